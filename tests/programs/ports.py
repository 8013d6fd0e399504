"""Small networks, each as one framework's users write it (the bench) and as a port does (the device).

FAMILIES: name -> (weights(), bench(w, site), port(w, site), faults). Both give (logits, loss). site(name, right,
wrong) runs right(), or, where that fault is drawn and the program is the port, wrong(); make.py knows the op calls
that ran within it on both sides."""
import math

import torch
import torch.nn.functional as F

D, T, B, V, H = 16, 6, 2, 23, 2


def rand(seed, **shapes):
    g = torch.Generator().manual_seed(seed)
    w = {}
    for name, shape in shapes.items():
        if isinstance(shape, int):
            w[name] = 1 + 0.2 * torch.randn(shape, generator=g) if name.startswith("n") else 0.2 * torch.randn(shape, generator=g)
        else:
            w[name] = torch.randn(*shape, generator=g) / math.sqrt(math.prod(shape[1:]))
    return w


def tokens(seed=3):
    g = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, V, (B, T + 1), generator=g)
    return ids[:, :-1], ids[:, 1:]


def causal():
    return torch.ones(T, T).tril().bool()


def heads(x):
    return x.view(B, T, H, -1).transpose(1, 2)


def joined(x):
    return x.transpose(1, 2).reshape(B, T, -1)


# --- as Hugging Face's Llama against Meta's own: rotation by halves and by complex numbers

def llama_weights():
    w = rand(1, emb=(V, D), head=(V, D), nf=D)
    w["emb"] *= math.sqrt(D)
    for i in range(2):
        w.update({f"{k}{i}": v for k, v in rand(10 + i, na=D, nb=D, q=(D, D), k=(D // 2, D), v=(D // 2, D), o=(D, D), gate=(2 * D, D), up=(2 * D, D), down=(D, 2 * D)).items()})
    return w


def angles(theta=100.):
    return torch.outer(torch.arange(T).float(), 1. / theta ** (torch.arange(0, D // H, 2).float() / (D // H)))


def llama_bench(w, site):
    ids, labels = tokens()
    x = F.embedding(ids, w["emb"])

    def norm(x, n, name):
        return site(name, lambda: n * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)))
    a = site("theta", angles)
    a = torch.cat([a, a], -1)
    cos, sin = a.cos().to(x.dtype), a.sin().to(x.dtype)

    def turn(x):
        p, q = x.chunk(2, -1)
        return x * cos + torch.cat([-q, p], -1) * sin
    for i in range(2):
        h = norm(x, w[f"na{i}"], "eps")
        q, k, v = heads(F.linear(h, w[f"q{i}"])), F.linear(h, w[f"k{i}"]), F.linear(h, w[f"v{i}"])
        k, v = k.view(B, T, 1, -1).transpose(1, 2), v.view(B, T, 1, -1).transpose(1, 2)
        q, k = site("rotation", lambda: turn(q)), turn(k)
        k, v = (x[:, :, None].expand(B, 1, H, T, -1).reshape(B, H, T, -1) for x in (k, v))
        s = site("scale", lambda: q @ k.transpose(2, 3) * (D // H) ** -0.5)
        s = site("mask", lambda: s + torch.where(causal(), 0., torch.finfo(x.dtype).min).to(x.dtype))
        a = F.softmax(s, -1, dtype=torch.float32).to(x.dtype) @ v
        a = F.linear(joined(a), w[f"o{i}"])
        x = site("residual", lambda: x + a) if i == 1 else x + a
        h = norm(x, w[f"nb{i}"], "second")
        h = site("gate", lambda: F.silu(F.linear(h, w[f"gate{i}"])) * F.linear(h, w[f"up{i}"]))
        x = x + F.linear(h, w[f"down{i}"])
    y = F.linear(norm(x, w["nf"], "final"), w["head"])
    loss = site("shift", lambda: F.cross_entropy(y.float().view(-1, V), labels.reshape(-1)))
    return y, loss


def llama_port(w, site):
    ids, labels = tokens()
    x = F.embedding(ids, w["emb"])

    def norm(x, n, name, wrong):
        return site(name, lambda: F.rms_norm(x, (D,), n, 1e-5), wrong)
    z = site("theta", angles, lambda: angles(1000.))
    z = torch.polar(torch.ones_like(z), z)

    def turn(x, by=None):
        p, q = x.float().chunk(2, -1)
        x = torch.view_as_real(torch.view_as_complex(torch.stack([p, q], -1).contiguous()) * (z if by is None else by))
        return torch.cat([x[..., 0], x[..., 1]], -1).to(h.dtype)
    for i in range(2):
        n = w[f"na{i}"]
        h = norm(x, n, "eps", lambda: F.rms_norm(x, (D,), n, 1e-2))
        q, k, v = F.linear(h, w[f"q{i}"]), F.linear(h, w[f"k{i}"]), F.linear(h, w[f"v{i}"])
        q, k, v = heads(q), k.view(B, T, 1, -1).transpose(1, 2), v.view(B, T, 1, -1).transpose(1, 2)
        q, k = site("rotation", lambda: turn(q), lambda: turn(q, z.conj())), turn(k)
        k, v = k.expand(B, H, T, -1), v.expand(B, H, T, -1)
        s = site("scale", lambda: torch.matmul(q, k.mT) / math.sqrt(D // H), lambda: torch.matmul(q, k.mT) / math.sqrt(D))
        s = site("mask", lambda: s.masked_fill(~causal(), float("-inf")), lambda: s.masked_fill(~causal(), 0.))
        a = F.linear(joined(torch.matmul(F.softmax(s.float(), -1).to(x.dtype), v)), w[f"o{i}"])
        x = site("residual", lambda: x + a, lambda: h + a) if i == 1 else a + x
        n2 = w[f"nb{i}"]
        h = norm(x, n2, "second", lambda: F.rms_norm(x, (D,), None, 1e-5))
        g, u = F.linear(h, torch.cat([w[f"gate{i}"], w[f"up{i}"]])).chunk(2, -1)
        h = site("gate", lambda: F.silu(g) * u, lambda: F.silu(u) * g)
        x = x + F.linear(h, w[f"down{i}"])
    y = F.linear(norm(x, w["nf"], "final", lambda: F.layer_norm(x, (D,), w["nf"], None, 1e-5)), w["head"])
    loss = site("shift", lambda: F.cross_entropy(y.float().flatten(0, 1), labels.flatten()),
                lambda: F.cross_entropy(y.float().flatten(0, 1), labels.roll(1, 1).flatten()))
    return y, loss


# --- as Hugging Face's GPT-2 (one product for q, k, v by addmm) against nanoGPT

def gpt_weights():
    w = rand(2, emb=(V, D), pos=(T, D), nf=D, bf=D)
    w["emb"] *= 3
    for i in range(2):
        w.update({f"{k}{i}": v for k, v in rand(20 + i, na=D, ba=D, nb=D, bb=D, qkv=(3 * D, D), qkvb=3 * D, o=(D, D), ob=D, up=(4 * D, D), upb=4 * D, down=(D, 4 * D), downb=D).items()})
    return w


def gpt_bench(w, site):
    ids, labels = tokens()
    x = site("positions", lambda: F.embedding(ids, w["emb"]) + F.embedding(torch.arange(T), w["pos"]))

    def conv1d(x, m, b):
        return torch.addmm(b, x.view(-1, x.shape[-1]), m.t()).view(B, T, -1)
    for i in range(2):
        h = site("eps", lambda: F.layer_norm(x, (D,), w[f"na{i}"], w[f"ba{i}"], 1e-5))
        q, k, v = (heads(t) for t in site("packing", lambda: conv1d(h, w[f"qkv{i}"], w[f"qkvb{i}"]).split(D, 2)))
        s = site("scale", lambda: q @ k.transpose(-1, -2) / math.sqrt(D // H))
        s = site("mask", lambda: torch.where(causal(), s, torch.finfo(s.dtype).min))
        a = site("axis", lambda: F.softmax(s, -1)) @ v
        a = conv1d(joined(a), w[f"o{i}"], w[f"ob{i}"])
        x = site("residual", lambda: a + x)
        h = F.layer_norm(x, (D,), w[f"nb{i}"], w[f"bb{i}"], 1e-5)
        h = conv1d(h, w[f"up{i}"], w[f"upb{i}"])
        h = site("gelu", lambda: 0.5 * h * (1 + torch.tanh(math.sqrt(2 / math.pi) * (h + 0.044715 * h.pow(3)))))
        x = x + site("bias", lambda: conv1d(h, w[f"down{i}"], w[f"downb{i}"]))
    y = F.linear(F.layer_norm(x, (D,), w["nf"], w["bf"], 1e-5), w["emb"])
    labels = torch.where(labels < 3, -100, labels)
    return y, site("ignored", lambda: F.cross_entropy(y.reshape(-1, V), labels.reshape(-1), ignore_index=-100))


def gpt_port(w, site):
    ids, labels = tokens()
    p = w["pos"][torch.arange(T)]
    e = F.embedding(ids, w["emb"])
    x = site("positions", lambda: e + p, lambda: e + p.roll(1, 0))
    for i in range(2):
        h = site("eps", lambda: F.layer_norm(x, (D,), w[f"na{i}"], w[f"ba{i}"], 1e-5), lambda: F.layer_norm(x, (D,), w[f"na{i}"], w[f"ba{i}"], 1e-2))
        c = F.linear(h, w[f"qkv{i}"], w[f"qkvb{i}"])
        q, k, v = site("packing", lambda: c.split(D, -1), lambda: c.view(B, T, D, 3).unbind(-1))
        q, k, v = (heads(t) for t in (q, k, v))
        s = site("scale", lambda: q @ k.mT * (D // H) ** -0.5, lambda: q @ k.mT * (D // H) ** -1)
        s = site("mask", lambda: s.masked_fill(~causal(), float("-inf")), lambda: s.masked_fill(~causal().roll(1, 1), -1e4))
        a = site("axis", lambda: F.softmax(s, -1), lambda: F.softmax(s, -2)) @ v
        a = F.linear(joined(a), w[f"o{i}"], w[f"ob{i}"])
        x = site("residual", lambda: x + a, lambda: a * 1.)
        h = F.linear(F.layer_norm(x, (D,), w[f"nb{i}"], w[f"bb{i}"]), w[f"up{i}"], w[f"upb{i}"])
        h = site("gelu", lambda: F.gelu(h, approximate="tanh"), lambda: F.relu(h))
        x = x + site("bias", lambda: F.linear(h, w[f"down{i}"], w[f"downb{i}"]), lambda: F.linear(h, w[f"down{i}"]))
    y = F.layer_norm(x, (D,), w["nf"], w["bf"]) @ w["emb"].t()
    labels = torch.where(labels < 3, -1, labels)
    return y, site("ignored", lambda: F.cross_entropy(y.flatten(0, 1), labels.flatten(), ignore_index=-1),
                   lambda: F.cross_entropy(y.flatten(0, 1), labels.flatten().clamp(min=0)))


# --- BERT: three embeddings, a mask of padding, post-norm

def bert_weights():
    w = rand(3, emb=(V, D), pos=(T, D), kind=(2, D), n0=D, b0=D, head=(V, D), headb=V)
    for i in range(2):
        w.update({f"{k}{i}": v for k, v in rand(30 + i, na=D, ba=D, nb=D, bb=D, q=(D, D), qb=D, k=(D, D), kb=D, v=(D, D), vb=D, o=(D, D), ob=D, up=(2 * D, D), upb=2 * D, down=(D, 2 * D), downb=D).items()})
    return w


def bert_input():
    ids, _ = tokens(5)
    keep = torch.ones(B, T).bool()
    keep[0, -2:] = False
    return ids, torch.arange(T).ge(3).long().expand(B, T), keep, torch.where(ids % 3 == 0, ids, -100)


def bert_bench(w, site):
    ids, kinds, keep, labels = bert_input()
    x = site("kinds", lambda: F.embedding(ids, w["emb"]) + F.embedding(kinds, w["kind"])) + F.embedding(torch.arange(T), w["pos"])
    x = F.layer_norm(x, (D,), w["n0"], w["b0"], 1e-5)
    bias = site("padding", lambda: (1. - keep[:, None, None].to(x.dtype)) * torch.finfo(x.dtype).min)
    for i in range(2):
        q, k, v = (heads(F.linear(x, w[f"{n}{i}"], w[f"{n}b{i}"])) for n in "qkv")
        s = q @ k.transpose(-1, -2) / math.sqrt(D // H) + bias
        a = site("context", lambda: F.softmax(s, -1) @ v)
        a = F.linear(joined(a), w[f"o{i}"], w[f"ob{i}"])
        x = site("postnorm", lambda: F.layer_norm(a + x, (D,), w[f"na{i}"], w[f"ba{i}"], 1e-5))
        h = site("act", lambda: F.gelu(F.linear(x, w[f"up{i}"], w[f"upb{i}"])))
        h = F.linear(h, w[f"down{i}"], w[f"downb{i}"])
        x = F.layer_norm(site("residual", lambda: h + x), (D,), w[f"nb{i}"], w[f"bb{i}"], 1e-5)
    y = F.linear(x, w["head"], w["headb"])
    return y, F.cross_entropy(y.view(-1, V), labels.reshape(-1))


def bert_port(w, site):
    ids, kinds, keep, labels = bert_input()
    e, p = F.embedding(ids, w["emb"]), w["pos"]
    x = e + p
    x = site("kinds", lambda: x + F.embedding(kinds, w["kind"]), lambda: x + F.embedding(1 - kinds, w["kind"]))
    x = F.layer_norm(x, (D,), w["n0"], w["b0"])
    hide = site("padding", lambda: ~keep[:, None, None], lambda: keep[:, None, None] & False)
    for i in range(2):
        c = F.linear(x, torch.cat([w[f"{n}{i}"] for n in "qkv"]), torch.cat([w[f"{n}b{i}"] for n in "qkv"]))
        q, k, v = (heads(t) for t in c.chunk(3, -1))
        a = site("context", lambda: F.scaled_dot_product_attention(q, k, v, attn_mask=~hide),
                 lambda: F.scaled_dot_product_attention(q, v, k, attn_mask=~hide))
        a = F.linear(joined(a), w[f"o{i}"], w[f"ob{i}"])
        x = site("postnorm", lambda: F.layer_norm(x + a, (D,), w[f"na{i}"], w[f"ba{i}"]),
                 lambda: x + F.layer_norm(a, (D,), w[f"na{i}"], w[f"ba{i}"]))
        u = F.linear(x, w[f"up{i}"], w[f"upb{i}"])
        h = F.linear(site("act", lambda: F.gelu(u), lambda: F.gelu(u, approximate="tanh") * 1.1), w[f"down{i}"], w[f"downb{i}"])
        x = F.layer_norm(site("residual", lambda: x + h, lambda: h + 0.), (D,), w[f"nb{i}"], w[f"bb{i}"])
    y = F.linear(x, w["head"], w["headb"])
    return y, F.cross_entropy(y.flatten(0, 1), labels.flatten())


# --- ViT: patches by a convolution, or by a product; a token for the class

def vit_weights():
    w = rand(4, patch=(D, 3, 2, 2), patchb=D, cls=(1, 1, D), pos=(1, 5, D), nf=D, bf=D, head=(7, D), headb=7)
    w.update({k: v for k, v in rand(40, na=D, ba=D, nb=D, bb=D, qkv=(3 * D, D), qkvb=3 * D, o=(D, D), ob=D, up=(2 * D, D), upb=2 * D, down=(D, 2 * D), downb=D, ls=D).items()})
    return w


def vit_input(w):
    g = torch.Generator().manual_seed(9)
    return torch.randn(3, 3, 4, 4, generator=g).to(w["head"].dtype), torch.tensor([1, 5, 2])


def vit_bench(w, site):
    img, labels = vit_input(w)
    x = F.conv2d(img, w["patch"], w["patchb"], stride=2)
    x = site("order", lambda: x.flatten(2).transpose(1, 2))
    x = torch.cat([w["cls"].expand(3, -1, -1), x], 1)
    x = site("positions", lambda: x + w["pos"])
    h = F.layer_norm(x, (D,), w["na"], w["ba"], 1e-6)
    q, k, v = (F.linear(h, w["qkv"][j * D:(j + 1) * D], w["qkvb"][j * D:(j + 1) * D]).view(3, 5, H, -1).transpose(1, 2) for j in range(3))
    a = site("attend", lambda: F.softmax(q @ k.mT * (D // H) ** -0.5, -1) @ v).transpose(1, 2).reshape(3, 5, D)
    x = F.linear(a, w["o"], w["ob"]) + x
    h = F.layer_norm(x, (D,), w["nb"], w["bb"], 1e-6)
    h = F.linear(F.gelu(F.linear(h, w["up"], w["upb"])), w["down"], w["downb"])
    x = x + site("layerscale", lambda: h * w["ls"])
    x = F.layer_norm(x, (D,), w["nf"], w["bf"], 1e-6)
    y = F.linear(site("pool", lambda: x[:, 0]), w["head"], w["headb"])
    return y, F.cross_entropy(y, labels)


def vit_port(w, site):
    img, labels = vit_input(w)
    x = img.view(3, 3, 2, 2, 2, 2).permute(0, 2, 4, 1, 3, 5).reshape(3, 4, 12)
    x = F.linear(x, w["patch"].flatten(1), w["patchb"])
    x = site("order", lambda: x * 1., lambda: x.view(3, 2, 2, D).transpose(1, 2).reshape(3, 4, D) * 1.)
    x = torch.cat([w["cls"].expand(3, -1, -1), x], 1)
    x = site("positions", lambda: w["pos"] + x, lambda: x + w["pos"].flip(1))
    h = F.layer_norm(x, (D,), w["na"], w["ba"], 1e-6)
    q, k, v = F.linear(h, w["qkv"], w["qkvb"]).view(3, 5, 3, H, -1).permute(2, 0, 3, 1, 4)
    a = site("attend", lambda: F.scaled_dot_product_attention(q, k, v), lambda: F.scaled_dot_product_attention(k, q, v))
    x = x + F.linear(a.transpose(1, 2).reshape(3, 5, D), w["o"], w["ob"])
    h = F.layer_norm(x, (D,), w["nb"], w["bb"], 1e-6)
    h = F.linear(F.gelu(F.linear(h, w["up"], w["upb"])), w["down"], w["downb"])
    x = site("layerscale", lambda: torch.addcmul(x, h, w["ls"]), lambda: x + h)
    x = F.layer_norm(x, (D,), w["nf"], w["bf"], 1e-6)
    y = F.linear(site("pool", lambda: x[:, 0], lambda: x.mean(1)), w["head"], w["headb"])
    return y, F.cross_entropy(y, labels)


# --- a residual network with batch norm; the port folds the norm's scale, or convolves by a product

def resnet_weights():
    return rand(5, c0=(8, 3, 3, 3), n0=8, b0=8, c1=(8, 8, 3, 3), n1=8, b1=8, c2=(8, 8, 3, 3), n2=8, b2=8, head=(5, 8), headb=5)


def resnet_input(w):
    g = torch.Generator().manual_seed(11)
    return torch.randn(4, 3, 6, 6, generator=g).to(w["head"].dtype), torch.tensor([1, 4, 2, 0])


def resnet_bench(w, site):
    img, labels = resnet_input(w)

    def norm(x, i):
        return F.batch_norm(x, None, None, w[f"n{i}"], w[f"b{i}"], True, 0.1, 1e-5)
    x = F.relu(norm(F.conv2d(img, w["c0"], padding=1), 0))
    x = site("pool", lambda: F.max_pool2d(x, 2))
    h = site("inner", lambda: F.relu(norm(F.conv2d(x, w["c1"], padding=1), 1)))
    h = site("norm", lambda: norm(F.conv2d(h, w["c2"], padding=1), 2))
    x = F.relu(site("shortcut", lambda: h + x))
    y = F.linear(site("mean", lambda: F.adaptive_avg_pool2d(x, 1)).flatten(1), w["head"], w["headb"])
    return y, F.cross_entropy(y, labels)


def resnet_port(w, site):
    img, labels = resnet_input(w)

    def norm(x, i, unbiased=False):
        m, v = x.mean((0, 2, 3), keepdim=True), x.var((0, 2, 3), keepdim=True, unbiased=unbiased)
        return (x - m) * torch.rsqrt(v + 1e-5) * w[f"n{i}"].view(1, -1, 1, 1) + w[f"b{i}"].view(1, -1, 1, 1)
    x = norm(F.conv2d(img, w["c0"], padding=1), 0).clamp(min=0)
    x = site("pool", lambda: F.max_pool2d(x, 2, 2), lambda: F.avg_pool2d(x, 2))
    h = F.conv2d(x, w["c1"], padding=1)
    h = site("inner", lambda: F.relu(norm(h, 1)), lambda: F.relu(norm(h, 0)))
    h = F.conv2d(h, w["c2"], padding=1)
    h = site("norm", lambda: norm(h, 2), lambda: norm(h, 2, True))
    x = F.relu(site("shortcut", lambda: x + h, lambda: h + 0.))
    y = F.linear(site("mean", lambda: x.mean((2, 3)), lambda: x.amax((2, 3))), w["head"], w["headb"])
    return y, F.cross_entropy(y, labels)


# --- experts: a loop over them, and all at once by einsum

def moe_weights():
    return rand(6, emb=(V, D), n=D, gate=(4, D), up=(4, 2 * D, D), down=(4, D, 2 * D), nf=D, head=(V, D))


def moe_bench(w, site):
    ids, labels = tokens(7)
    x = F.embedding(ids, w["emb"]) * 4
    h = site("norm", lambda: F.rms_norm(x, (D,), w["n"], 1e-5)).view(-1, D)
    p = F.softmax(F.linear(h, w["gate"]), -1, dtype=torch.float32)
    v, at = site("router", lambda: p.topk(2, -1))
    v = site("renormalise", lambda: v / v.sum(-1, keepdim=True)).to(x.dtype)
    out = torch.zeros_like(h)
    for j in range(4):
        row, k = torch.where(at == j)
        e = site("act", lambda: F.silu(F.linear(h[row], w["up"][j])))
        out = out.index_add(0, row, site("weighted", lambda: F.linear(e, w["down"][j]) * v[row, k, None]))
    x = site("residual", lambda: x + out.view(B, T, D))
    y = F.linear(F.rms_norm(x, (D,), w["nf"], 1e-5), w["head"])
    return y, F.cross_entropy(y.view(-1, V), labels.reshape(-1))


def moe_port(w, site):
    ids, labels = tokens(7)
    x = F.embedding(ids, w["emb"]) * 4
    h = site("norm", lambda: F.rms_norm(x, (D,), w["n"], 1e-5), lambda: F.rms_norm(x, (D,), None, 1e-5)).view(-1, D)
    g = F.linear(h, w["gate"]).float()
    l, at = site("router", lambda: g.topk(2, -1), lambda: g.topk(2, -1, largest=False))
    v = site("renormalise", lambda: F.softmax(l, -1), lambda: F.softmax(g, -1).gather(-1, at)).to(x.dtype)
    u = torch.einsum("td,efd->tef", h, w["up"])
    e = site("act", lambda: F.silu(u), lambda: F.gelu(u))
    o = torch.einsum("tef,edf->ted", e, w["down"])
    mix = torch.zeros(h.shape[0], 4, dtype=x.dtype).scatter(1, at, v)
    o = site("weighted", lambda: (o * mix[..., None]).sum(1), lambda: o.gather(1, at[..., None].expand(-1, -1, D)).mean(1))
    x = site("residual", lambda: o.view(B, T, D) + x, lambda: o.view(B, T, D) + 0.)
    y = F.linear(F.rms_norm(x, (D,), w["nf"], 1e-5), w["head"])
    return y, F.cross_entropy(y.flatten(0, 1), labels.flatten())


# --- a GRU and an LSTM by hand against each step's cell: gates packed, or apart

def lstm_weights():
    return rand(8, emb=(V, D), wi=(4 * D, D), wh=(4 * D, D), bi=4 * D, bh=4 * D, head=(V, D), headb=V)


def lstm_bench(w, site):
    ids, labels = tokens(8)
    x = F.embedding(ids, w["emb"]) * 3
    h = c = torch.zeros(B, D, dtype=x.dtype)
    out = []
    for t in range(T):
        g = site("product", lambda: F.linear(x[:, t], w["wi"], w["bi"]) + F.linear(h, w["wh"], w["bh"]))
        i, f, z, o = site("gates", lambda: g.chunk(4, -1))
        c = site("cell", lambda: torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(z))
        h = site("state", lambda: torch.sigmoid(o) * torch.tanh(c))
        out.append(h)
    y = F.linear(site("stack", lambda: torch.stack(out, 1)), w["head"], w["headb"])
    return y, F.cross_entropy(y.view(-1, V), labels.reshape(-1))


def lstm_port(w, site):
    ids, labels = tokens(8)
    x = F.embedding(ids, w["emb"]) * 3
    gi = F.linear(x, w["wi"], w["bi"])
    h = c = torch.zeros(B, D, dtype=x.dtype)
    out = []
    for t in range(T):
        g = site("product", lambda: torch.addmm(w["bh"], h, w["wh"].t()) + gi[:, t], lambda: torch.matmul(h, w["wh"].t()) + gi[:, t])
        i, f, z, o = site("gates", lambda: g.split(D, -1), lambda: tuple(g.split(D, -1)[k] for k in (0, 1, 3, 2)))
        c = site("cell", lambda: torch.addcmul(i.sigmoid() * z.tanh(), f.sigmoid(), c), lambda: torch.addcmul(i.sigmoid() * z.tanh(), (f + 1).sigmoid(), c))
        h = site("state", lambda: o.sigmoid() * c.tanh(), lambda: o.sigmoid() * c)
        out.append(h)
    y = F.linear(site("stack", lambda: torch.cat([h[:, None] for h in out], 1), lambda: torch.cat([h[:, None] for h in out[::-1]], 1)), w["head"], w["headb"])
    return y, F.cross_entropy(y.flatten(0, 1), labels.flatten())


# --- a small UNet: group norm, upsampling, a skip

def unet_weights():
    return rand(12, c0=(8, 3, 3, 3), b0=8, n0=8, m0=8, c1=(8, 8, 3, 3), b1=8, c2=(8, 16, 3, 3), b2=8, out=(3, 8, 1, 1), outb=3)


def unet_input(w):
    g = torch.Generator().manual_seed(13)
    return (torch.randn(2, 3, 8, 8, generator=g).to(w["out"].dtype) for _ in range(2))


def unet_bench(w, site):
    img, target = unet_input(w)
    x = F.conv2d(img, w["c0"], w["b0"], padding=1)
    x = F.silu(site("groups", lambda: F.group_norm(x, 2, w["n0"], w["m0"], 1e-5)))
    d = site("down", lambda: F.avg_pool2d(x, 2))
    d = F.silu(F.conv2d(d, w["c1"], w["b1"], padding=1))
    u = site("up", lambda: F.interpolate(d, scale_factor=2, mode="nearest"))
    c = site("skip", lambda: torch.cat([u, x], 1))
    h = F.silu(F.conv2d(c, w["c2"], w["b2"], padding=1))
    y = F.conv2d(h, w["out"], w["outb"])
    return y, site("loss", lambda: F.mse_loss(y, target))


def unet_port(w, site):
    img, target = unet_input(w)
    x = F.conv2d(F.pad(img, (1, 1, 1, 1)), w["c0"], w["b0"])

    def norm(x, groups):
        z = x.reshape(2, groups, -1)
        z = (z - z.mean(-1, keepdim=True)) / torch.sqrt(z.var(-1, unbiased=False, keepdim=True) + 1e-5)
        return z.view(2, 8, 8, 8) * w["n0"][:, None, None] + w["m0"][:, None, None]
    x = site("groups", lambda: norm(x, 2), lambda: norm(x, 4))
    x = x * torch.sigmoid(x)
    d = site("down", lambda: x.view(2, 8, 4, 2, 4, 2).mean((3, 5)), lambda: x[:, :, ::2, ::2] * 1.)
    d = F.silu(F.conv2d(d, w["c1"], w["b1"], padding=1))
    u = site("up", lambda: d.repeat_interleave(2, 2).repeat_interleave(2, 3), lambda: F.interpolate(d, scale_factor=2, mode="bilinear"))
    c = site("skip", lambda: torch.cat((u, x), dim=1), lambda: torch.cat((x, u), dim=1))
    h = F.silu(F.conv2d(c, w["c2"], w["b2"], padding="same"))
    y = F.conv2d(h, w["out"], w["outb"])
    return y, site("loss", lambda: ((y - target) ** 2).mean(), lambda: ((y - target) ** 2).sum((1, 2, 3)).mean())


FAMILIES = {
    "llama": (llama_weights, llama_bench, llama_port, ["theta", "eps", "rotation", "scale", "mask", "residual", "second", "gate", "final", "shift"]),
    "gpt": (gpt_weights, gpt_bench, gpt_port, ["positions", "eps", "packing", "scale", "mask", "axis", "residual", "gelu", "bias", "ignored"]),
    "bert": (bert_weights, bert_bench, bert_port, ["kinds", "padding", "context", "postnorm", "act", "residual"]),
    "vit": (vit_weights, vit_bench, vit_port, ["order", "positions", "attend", "layerscale", "pool"]),
    "resnet": (resnet_weights, resnet_bench, resnet_port, ["pool", "inner", "norm", "shortcut", "mean"]),
    "moe": (moe_weights, moe_bench, moe_port, ["norm", "router", "renormalise", "act", "weighted", "residual"]),
    "lstm": (lstm_weights, lstm_bench, lstm_port, ["product", "gates", "cell", "state", "stack"]),
    "unet": (unet_weights, unet_bench, unet_port, ["groups", "down", "up", "skip", "loss"]),
}
