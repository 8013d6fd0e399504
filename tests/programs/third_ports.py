"""Networks of a third kind, each as it is usually written (the bench) and as a port writes it (the device); as in
ports.py.

Written after the judge had been taught on ports.py and half of more_ports.py: what it said of them first stands in
RESULTS.md."""
import math

import torch
import torch.nn.functional as F

from ports import B, D, H, T, V, causal, heads, joined, rand, tokens


# --- speech: convolutions in front, waves as positions, a decoder that attends to what was heard

def whisper_weights():
    w = rand(201, c1=(D, 5, 3), c1b=D, c2=(D, D, 3), c2b=D, emb=(V, D), pos=(T, D), nf=D, nfb=D)
    for i, k in enumerate("exd"):
        w.update({f"{n}{k}": v for n, v in rand(202 + i, n=D, b=D, q=(D, D), qb=D, k=(D, D), v=(D, D), vb=D, o=(D, D), ob=D).items()})
    w.update(rand(206, m=D, mb=D, up=(2 * D, D), upb=2 * D, down=(D, 2 * D), downb=D))
    w["emb"] *= 3
    return w


def whisper_input(w):
    return torch.randn(B, 5, 12, generator=torch.Generator().manual_seed(207)).to(w["emb"].dtype)


def whisper_bench(w, site):
    ids, labels = tokens(201)

    def attend(x, y, k, mask=None):
        q, u, v = heads(F.linear(x, w["q" + k], w["qb" + k])), heads(F.linear(y, w["k" + k])), heads(F.linear(y, w["v" + k], w["vb" + k]))
        s = (q * (D // H) ** -0.25) @ (u * (D // H) ** -0.25).transpose(2, 3)
        s = s if mask is None else s + mask
        return F.linear(joined(F.softmax(s.float(), -1).to(q.dtype) @ v), w["o" + k], w["ob" + k])
    x = F.gelu(F.conv1d(whisper_input(w), w["c1"], w["c1b"], padding=1))
    x = site("stride", lambda: F.gelu(F.conv1d(x, w["c2"], w["c2b"], stride=2, padding=1))).permute(0, 2, 1)
    t = torch.exp(-math.log(10000) / (D // 2 - 1) * torch.arange(D // 2))
    at = torch.arange(6)[:, None] * t[None]
    x = x + site("waves", lambda: torch.cat([at.sin(), at.cos()], 1)).to(x.dtype)
    h = F.layer_norm(x, (D,), w["ne"], w["be"])
    x = x + site("heard", lambda: attend(h, h, "e"))
    z = F.embedding(ids, w["emb"]) + w["pos"]
    mask = torch.full((T, T), float("-inf"), dtype=z.dtype).triu(1)
    h = F.layer_norm(z, (D,), w["nd"], w["bd"])
    z = z + attend(h, h, "d", mask)
    h = site("crossed", lambda: F.layer_norm(z, (D,), w["nx"], w["bx"]))
    z = z + attend(h, x, "x")
    h = F.linear(F.layer_norm(z, (D,), w["m"], w["mb"]), w["up"], w["upb"])
    h = site("gelu", lambda: F.gelu(h))
    z = z + F.linear(h, w["down"], w["downb"])
    y = F.linear(site("last", lambda: F.layer_norm(z, (D,), w["nf"], w["nfb"])), w["emb"])
    return y, F.cross_entropy(y.view(-1, V), labels.reshape(-1))


def whisper_port(w, site):
    ids, labels = tokens(201)

    def attend(x, y, k, is_causal=False, **more):
        q = torch.addmm(w["qb" + k], x.flatten(0, 1), w["q" + k].t()).view(B, -1, H, D // H)
        u, v = (y @ w["k" + k].t()).view(B, -1, H, D // H), (y @ w["v" + k].t() + w["vb" + k]).view(B, -1, H, D // H)
        a = F.scaled_dot_product_attention(*(t.transpose(1, 2) for t in (q, u, v)), is_causal=is_causal, **more)
        return a.transpose(1, 2).flatten(2) @ w["o" + k].t() + w["ob" + k]
    x = F.gelu(F.conv1d(F.pad(whisper_input(w), (1, 1)), w["c1"], w["c1b"]))
    x = site("stride", lambda: F.gelu(F.conv1d(F.pad(x, (1, 1)), w["c2"], w["c2b"], stride=2)), lambda: F.gelu(F.conv1d(F.pad(x, (0, 2)), w["c2"], w["c2b"], stride=2))).mT
    t = 10000 ** (-torch.arange(D // 2) / (D // 2 - 1))
    at = torch.outer(torch.arange(6), t)
    x = site("waves", lambda: torch.hstack([at.sin(), at.cos()]), lambda: torch.stack([at.sin(), at.cos()], 2).flatten(1)).to(x.dtype) + x
    h = F.layer_norm(x, (D,), w["ne"], w["be"])
    x = site("heard", lambda: attend(h, h, "e"), lambda: attend(h, h, "e", True)) + x
    z = w["emb"][ids] + w["pos"]
    h = F.layer_norm(z, (D,), w["nd"], w["bd"])
    z = attend(h, h, "d", True) + z
    h = site("crossed", lambda: F.layer_norm(z, (D,), w["nx"], w["bx"]), lambda: F.layer_norm(z, (D,), w["nd"], w["bd"]))
    z = attend(h, x, "x") + z
    h = torch.addmm(w["upb"], F.layer_norm(z, (D,), w["m"], w["mb"]).flatten(0, 1), w["up"].t())
    h = site("gelu", lambda: 0.5 * h * (1 + torch.erf(h / math.sqrt(2))), lambda: h * torch.sigmoid(1.702 * h))
    z = z + torch.addmm(w["downb"], h, w["down"].t()).view(B, T, D)
    y = site("last", lambda: F.layer_norm(z, (D,), w["nf"], w["nfb"]), lambda: F.layer_norm(z, (D,), w["nf"])) @ w["emb"].t()
    return y, F.cross_entropy(y.flatten(0, 1), labels.flatten())


# --- a retention: step after step with a state, or all at once with a matrix of decays; tokens mixed with those before

def retention_weights():
    w = rand(211, emb=(V, D), n=D, nb=D, mix=D, q=(D, D), k=(D, D), v=(D, D), g=(D, D), o=(D, D), ng=D, ngb=D, m=D, mb=D, up=(2 * D, D), down=(D, 2 * D), head=(V, D))
    w["emb"] *= 3
    w["mix"] = torch.sigmoid(w["mix"] * 4)
    return w


def retention_bench(w, site):
    ids, labels = tokens(211)
    x = F.embedding(ids, w["emb"])
    h = F.layer_norm(x, (D,), w["n"], w["nb"])
    before = site("shift", lambda: torch.cat([torch.zeros_like(h[:, :1]), h[:, :-1]], 1))
    h = site("mix", lambda: h * w["mix"] + before * (1 - w["mix"]))
    q, k, v = heads(F.linear(h, w["q"])), heads(F.linear(h, w["k"])), heads(F.linear(h, w["v"]))
    k = k / math.sqrt(D // H)
    decay = site("decay", lambda: 1 - 2 ** (-2. - torch.arange(H))).view(H, 1, 1).to(x.dtype)
    state = torch.zeros(B, H, D // H, D // H, dtype=x.dtype)
    out = []
    for t in range(T):
        state = decay * state + k[:, :, t, :, None] * v[:, :, t, None, :]
        out.append((q[:, :, t, None] @ state)[:, :, 0])
    a = torch.stack(out, 1).reshape(B * T, D)
    a = site("groups", lambda: F.group_norm(a, H, w["ng"], w["ngb"])).view(B, T, D)
    a = site("gate", lambda: a * F.silu(F.linear(h, w["g"])))
    x = x + F.linear(a, w["o"])
    h = F.layer_norm(x, (D,), w["m"], w["mb"])
    x = x + F.linear(site("square", lambda: F.relu(F.linear(h, w["up"])) ** 2), w["down"])
    y = F.linear(x, w["head"])
    return y, F.cross_entropy(y.view(-1, V), labels.reshape(-1))


def retention_port(w, site):
    ids, labels = tokens(211)
    x = w["emb"][ids]
    h = F.layer_norm(x, (D,), w["n"], w["nb"])
    before = site("shift", lambda: F.pad(h, (0, 0, 1, -1)), lambda: h.roll(1, 1))
    h = site("mix", lambda: torch.lerp(before, h, w["mix"]), lambda: torch.lerp(h, before, w["mix"]))
    p = F.linear(h, torch.cat([w["q"], w["k"], w["v"]]))
    q, k, v = p.view(B, T, 3, H, D // H).permute(2, 0, 3, 1, 4)
    q = q * (D // H) ** -0.5
    rate = site("decay", lambda: torch.log1p(-torch.exp2(-2. - torch.arange(H))), lambda: torch.log1p(-torch.exp2(-2. - torch.arange(H).flip(0))))
    at = torch.arange(T)
    m = torch.exp(rate[:, None, None] * (at[:, None] - at)).masked_fill(~causal(), 0).to(x.dtype)
    a = (torch.matmul(q, k.mT) * m @ v).transpose(1, 2)
    a = site("groups", lambda: F.layer_norm(a, (D // H,)).flatten(2) * w["ng"] + w["ngb"], lambda: F.layer_norm(a.flatten(2), (D,), w["ng"], w["ngb"]))
    g = h @ w["g"].t()
    a = site("gate", lambda: g * torch.sigmoid(g) * a, lambda: torch.sigmoid(g) * a)
    x = F.linear(a, w["o"]) + x
    h = F.layer_norm(x, (D,), w["m"], w["mb"]) @ w["up"].t()
    x = site("square", lambda: h.clamp(min=0).square(), lambda: h.square()) @ w["down"].t() + x
    y = x @ w["head"].t()
    return y, F.cross_entropy(y.flatten(0, 1), labels.flatten())


# --- WaveNet: causal convolutions with holes, gates, skips that are summed

def wavenet_weights():
    w = rand(221, emb=(V, D), first=(D, D, 2), last=(V, D), lastb=V, mid=(D, D), midb=D)
    for i in range(3):
        w.update({f"{n}{i}": v for n, v in rand(222 + i, c=(2 * D, D, 2), cb=2 * D, r=(D, D, 1), s=(D, D, 1), rb=D, sb=D).items()})
    return w


def wavenet_bench(w, site):
    ids, labels = tokens(221)
    x = F.embedding(ids, w["emb"]).transpose(1, 2) * 2
    x = site("padded", lambda: F.conv1d(F.pad(x, (1, 0)), w["first"]))
    skip = 0
    for i in range(3):
        z = F.conv1d(F.pad(x, (2 ** i, 0)), w[f"c{i}"], w[f"cb{i}"], dilation=2 ** i) if i != 2 else \
            site("holes", lambda: F.conv1d(F.pad(x, (4, 0)), w["c2"], w["cb2"], dilation=4))
        a, b = z.chunk(2, 1)
        z = torch.tanh(a) * torch.sigmoid(b) if i != 1 else site("gate", lambda: torch.tanh(a) * torch.sigmoid(b))
        s = F.conv1d(z, w[f"s{i}"], w[f"sb{i}"])
        skip = skip + s if i != 2 else site("skips", lambda: skip + s)
        r = F.conv1d(z, w[f"r{i}"], w[f"rb{i}"])
        x = (x + r) * math.sqrt(0.5) if i != 0 else site("scaled", lambda: (x + r) * math.sqrt(0.5))
    h = F.relu(skip).transpose(1, 2)
    h = site("relu", lambda: F.relu(F.linear(h, w["mid"], w["midb"])))
    y = F.linear(h, w["last"], w["lastb"])
    return y, F.cross_entropy(y.view(-1, V), labels.reshape(-1))


def wavenet_port(w, site):
    ids, labels = tokens(221)
    x = w["emb"][ids] * 2

    def conv(x, k, b, d):       # steps before features
        y = sum(F.pad(x, (0, 0, d * (1 - j), 0))[:, :T] @ k[:, :, j].t() for j in range(2))
        return y if b is None else y + b
    x = site("padded", lambda: conv(x, w["first"], None, 1), lambda: F.conv1d(F.pad(x.mT, (0, 1)), w["first"]).mT)
    all_of = []
    for i in range(3):
        z = conv(x, w[f"c{i}"], w[f"cb{i}"], 2 ** i) if i != 2 else site("holes", lambda: conv(x, w["c2"], w["cb2"], 4), lambda: conv(x, w["c2"], w["cb2"], 3))
        a, b = z[..., :D], z[..., D:]
        z = torch.sigmoid(b) * torch.tanh(a) if i != 1 else site("gate", lambda: torch.sigmoid(b) * torch.tanh(a), lambda: torch.sigmoid(a) * torch.tanh(b))
        all_of.append(z @ w[f"s{i}"][:, :, 0].t() + w[f"sb{i}"])
        r = torch.addmm(w[f"rb{i}"], z.flatten(0, 1), w[f"r{i}"][:, :, 0].t()).view(B, T, D)
        x = (r + x) / math.sqrt(2) if i != 0 else site("scaled", lambda: (r + x) / math.sqrt(2), lambda: r + x)
    skip = site("skips", lambda: torch.stack(all_of).sum(0), lambda: torch.stack(all_of[1:]).sum(0))
    h = torch.addmm(w["midb"], skip.clamp(min=0).flatten(0, 1), w["mid"].t())
    h = site("relu", lambda: h.clamp(min=0), lambda: F.leaky_relu(h, 0.1))
    y = (h @ w["last"].t() + w["lastb"]).view(B, T, V)
    return y, F.cross_entropy(y.flatten(0, 1), labels.flatten())


# --- a recommender: bags of ids, products of pairs, a click or none

def dlrm_weights():
    return rand(231, a=(V, D), b=(V, D), c=(V, D), w1=(2 * D, 7), b1=2 * D, w2=(D, 2 * D), b2=D, t1=(D, D + 6), t1b=D, t2=(1, D), t2b=1)


def dlrm_input(w):
    g = torch.Generator().manual_seed(232)
    return torch.randn(8, 7, generator=g).to(w["w1"].dtype), torch.randint(0, V, (3, 8, 4), generator=g), torch.randint(0, 2, (8,), generator=g)


def dlrm_bench(w, site):
    dense, ids, clicks = dlrm_input(w)
    x = F.relu(F.linear(dense, w["w1"], w["b1"]))
    x = site("bottom", lambda: F.relu(F.linear(x, w["w2"], w["b2"])))
    bags = [F.embedding_bag(ids[0], w["a"], mode="sum"), site("bag", lambda: F.embedding_bag(ids[1], w["b"], mode="sum")), F.embedding_bag(ids[2], w["c"], mode="sum")]
    z = torch.stack([x, *bags], 1)
    p = torch.bmm(z, z.transpose(1, 2))
    i, j = torch.tril_indices(4, 4, -1)
    p = site("pairs", lambda: p[:, i, j])
    t = site("joined", lambda: torch.cat([x, p], 1))
    t = site("top", lambda: torch.sigmoid(F.linear(t, w["t1"], w["t1b"])))
    y = F.linear(t, w["t2"], w["t2b"]).squeeze(1)
    return y, site("loss", lambda: F.binary_cross_entropy_with_logits(y.float(), clicks.float()))


def dlrm_port(w, site):
    dense, ids, clicks = dlrm_input(w)
    x = torch.addmm(w["b1"], dense, w["w1"].t()).clamp(min=0)
    x = site("bottom", lambda: (x @ w["w2"].t() + w["b2"]).clamp(min=0), lambda: (x @ w["w2"].t() + w["b2"]))
    bags = [w["a"][ids[0]].sum(1), site("bag", lambda: w["b"][ids[1]].sum(1), lambda: w["b"][ids[1]].mean(1)), w["c"][ids[2]].sum(1)]
    z = torch.cat([x[:, None], *(b[:, None] for b in bags)], 1)
    p = torch.einsum("nid,njd->nij", z, z)
    p = site("pairs", lambda: torch.cat([p[:, k, :k] for k in range(1, 4)], 1), lambda: torch.cat([p[:, k, k + 1:] for k in range(3)], 1))
    t = site("joined", lambda: torch.hstack([x, p]), lambda: torch.hstack([p, x]))
    h = t @ w["t1"].t() + w["t1b"]
    t = site("top", lambda: 1 / (1 + torch.exp(-h)), lambda: torch.tanh(h))
    y = (t @ w["t2"].t())[:, 0] + w["t2b"]
    return y, site("loss", lambda: F.binary_cross_entropy(torch.sigmoid(y.float()), clicks.float()),
                   lambda: F.binary_cross_entropy_with_logits(torch.sigmoid(y.float()), clicks.float()))


# --- points: one perceptron for all, a learned turn, the largest of each feature

def points_weights():
    return rand(241, t=(9, 3), tb=9, c1=(D, 3), c1b=D, n1=D, n1b=D, c2=(2 * D, D), c2b=2 * D, n2=2 * D, n2b=2 * D, h=(D, 2 * D), hb=D, o=(5, D), ob=5)


def points_input(w):
    g = torch.Generator().manual_seed(242)
    return torch.randn(4, 10, 3, generator=g).to(w["o"].dtype), torch.randint(0, 5, (4,), generator=g)


def points_bench(w, site):
    x, labels = points_input(w)
    turn = F.linear(site("most", lambda: x.max(1)[0]), w["t"], w["tb"]).view(4, 3, 3)
    turn = site("unit", lambda: turn + torch.eye(3, dtype=x.dtype))
    x = site("turned", lambda: torch.bmm(x, turn)).transpose(1, 2)
    x = F.conv1d(x, w["c1"][:, :, None], w["c1b"])
    x = F.relu(site("batch", lambda: F.batch_norm(x, None, None, w["n1"], w["n1b"], True)))
    x = F.conv1d(x, w["c2"][:, :, None], w["c2b"])
    x = F.batch_norm(x, None, None, w["n2"], w["n2b"], True)
    x = site("pool", lambda: F.adaptive_max_pool1d(x, 1).flatten(1))
    h = F.relu(F.linear(x, w["h"], w["hb"]))
    y = F.linear(h, w["o"], w["ob"])
    p = site("classes", lambda: F.log_softmax(y.float(), 1))
    return y, F.nll_loss(p, labels)


def points_port(w, site):
    x, labels = points_input(w)
    turn = F.linear(site("most", lambda: x.amax(1), lambda: x.abs().amax(1)), w["t"], w["tb"])
    turn = site("unit", lambda: (turn + torch.eye(3, dtype=x.dtype).flatten()).view(4, 3, 3), lambda: turn.view(4, 3, 3))
    x = site("turned", lambda: torch.einsum("bnc,bcd->bnd", x, turn), lambda: torch.einsum("bnc,bdc->bnd", x, turn))

    def batch(x, n, b, unbiased=False):
        m, v = x.mean((0, 1)), x.var((0, 1), unbiased=unbiased)
        return (x - m) * torch.rsqrt(v + 1e-5) * n + b
    x = torch.addmm(w["c1b"], x.flatten(0, 1), w["c1"].t()).view(4, 10, D)
    x = site("batch", lambda: batch(x, w["n1"], w["n1b"]), lambda: batch(x, w["n1"], w["n1b"], True)).clamp(min=0)
    x = batch(x @ w["c2"].t() + w["c2b"], w["n2"], w["n2b"])
    x = site("pool", lambda: x.amax(1), lambda: x.mean(1))
    h = torch.addmm(w["hb"], x, w["h"].t()).clamp(min=0)
    y = torch.addmm(w["ob"], h, w["o"].t())
    p = site("classes", lambda: y.float() - torch.logsumexp(y.float(), 1, keepdim=True), lambda: y.float() - torch.logsumexp(y.float(), 0, keepdim=True))
    return y, -p.gather(1, labels[:, None]).mean()


# --- an autoencoder with a draw between: convolutions, and such as widen

def vae_weights():
    return rand(251, c1=(8, 3, 3, 3), c1b=8, c2=(D, 8, 3, 3), c2b=D, mu=(4, 4 * D), mub=4, var=(4, 4 * D), varb=4, up=(4 * D, 4), upb=4 * D, t1=(D, 8, 4, 4), t1b=8, t2=(8, 3, 4, 4), t2b=3)


def vae_input(w):
    g = torch.Generator().manual_seed(252)
    return torch.rand(2, 3, 8, 8, generator=g).to(w["mu"].dtype), torch.randn(2, 4, generator=g).to(w["mu"].dtype)


def vae_bench(w, site):
    img, eps = vae_input(w)
    x = F.silu(F.conv2d(img * 2 - 1, w["c1"], w["c1b"], stride=2, padding=1))
    x = site("second", lambda: F.silu(F.conv2d(x, w["c2"], w["c2b"], stride=2, padding=1))).flatten(1)
    mu, logvar = F.linear(x, w["mu"], w["mub"]), F.linear(x, w["var"], w["varb"])
    z = site("draw", lambda: mu + eps * torch.exp(0.5 * logvar))
    x = F.silu(F.linear(z, w["up"], w["upb"])).view(2, D, 2, 2)
    x = site("widen", lambda: F.conv_transpose2d(x, w["t1"], w["t1b"], stride=2, padding=1))
    x = F.silu(x)
    y = F.conv_transpose2d(x, w["t2"], w["t2b"], stride=2, padding=1)
    seen = site("seen", lambda: F.binary_cross_entropy_with_logits(y.float(), img.float(), reduction="sum")) / 2
    kl = site("kl", lambda: -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())) / 2
    return y, site("elbo", lambda: seen + kl)


def vae_port(w, site):
    img, eps = vae_input(w)
    x = F.conv2d(F.pad(img.mul(2).sub(1), (1, 1, 1, 1)), w["c1"], w["c1b"], stride=2)
    x = F.conv2d(x * torch.sigmoid(x), w["c2"], w["c2b"], stride=2, padding=1)
    x = site("second", lambda: x * torch.sigmoid(x), lambda: x * torch.sigmoid(x) * 1.5).view(2, -1)
    mu, logvar = torch.addmm(torch.cat([w["mub"], w["varb"]]), x, torch.cat([w["mu"], w["var"]]).t()).split(4, 1)
    z = site("draw", lambda: torch.addcmul(mu, eps, logvar.div(2).exp()), lambda: torch.addcmul(mu, eps, logvar.exp()))
    x = torch.addmm(w["upb"], z, w["up"].t())
    x = (x * torch.sigmoid(x)).view(2, D, 2, 2)

    def widen(k):       # the same as a convolution among zeros
        s = torch.zeros(2, D, 3, 3, dtype=x.dtype)
        s[:, :, ::2, ::2] = x
        return F.conv2d(s, k.transpose(0, 1).flip(2, 3), w["t1b"], padding=2)
    x = site("widen", lambda: widen(w["t1"]), lambda: widen(w["t1"].flip(2, 3)))
    x = x * torch.sigmoid(x)
    y = F.conv_transpose2d(x, w["t2"], w["t2b"], stride=2, padding=1)
    l = y.float()
    seen = site("seen", lambda: (F.softplus(l) - l * img).sum(), lambda: (F.softplus(l) - l * img).mean()) / 2
    kl = site("kl", lambda: (logvar.exp() + mu.square() - 1 - logvar).sum() / 2, lambda: (logvar.exp() + mu.abs() - 1 - logvar).sum() / 2) / 2
    return y, site("elbo", lambda: kl + seen, lambda: kl * 0.1 + seen)


# --- experts chosen by sigmoids with a bias that only chooses, and one that all tokens share

def experts_weights():
    w = rand(261, emb=(V, D), n=D, gate=(6, D), sg=(8, D), su=(8, D), sd=(D, 8), eg=(6, 8, D), eu=(6, 8, D), ed=(6, D, 8), nf=D, head=(V, D))
    w["bias"] = torch.tensor([0.5, -0.4, 0.1, 0.3, -0.2, 0.])
    w["emb"] *= 3
    w["gate"] *= 2
    return w


def experts_bench(w, site):
    ids, labels = tokens(261)
    x = F.embedding(ids, w["emb"])
    h = F.rms_norm(x, (D,), w["n"], 1e-6).view(-1, D)
    score = site("score", lambda: F.linear(h.float(), w["gate"].float()).sigmoid())
    pick = site("picked", lambda: torch.topk(score + w["bias"].float(), 2, dim=-1, sorted=False)[1])
    p = site("weigh", lambda: score.gather(1, pick))
    p = site("normed", lambda: p / (p.sum(-1, keepdim=True) + 1e-20))
    p = site("factor", lambda: p * 2.5)
    out = torch.zeros_like(h)
    for e in range(6):
        token, slot = torch.where(pick == e)
        if len(token):
            t = h[token]
            t = F.linear(F.silu(F.linear(t, w["eg"][e])) * F.linear(t, w["eu"][e]), w["ed"][e])
            out.index_add_(0, token, t * p[token, slot, None].to(t.dtype))
    out = site("shared", lambda: out + F.linear(F.silu(F.linear(h, w["sg"])) * F.linear(h, w["su"]), w["sd"]))
    x = x + out.view(B, T, D)
    y = F.linear(F.rms_norm(x, (D,), w["nf"], 1e-6), w["head"])
    return y, F.cross_entropy(y.view(-1, V), labels.reshape(-1))


def experts_port(w, site):
    ids, labels = tokens(261)
    x = w["emb"][ids]
    h = F.rms_norm(x, (D,), w["n"], 1e-6).flatten(0, 1)
    logit = h.float() @ w["gate"].float().t()
    score = site("score", lambda: 1 / (1 + torch.exp(-logit)), lambda: F.softmax(logit, -1))
    shown = score + w["bias"].float()
    pick = site("picked", lambda: torch.argsort(shown, -1, descending=True)[:, :2], lambda: torch.argsort(score, -1, descending=True)[:, :2])
    p = site("weigh", lambda: torch.take_along_dim(score, pick, 1), lambda: torch.take_along_dim(shown, pick, 1))
    p = site("normed", lambda: F.normalize(p, p=1, dim=-1), lambda: F.softmax(p, -1))
    p = site("factor", lambda: 2.5 * p, lambda: p * 1.)
    full = torch.zeros(B * T, 6).scatter(1, pick, p).to(h.dtype)
    up = F.silu(torch.einsum("td,efd->tef", h, w["eg"])) * torch.einsum("td,efd->tef", h, w["eu"])
    out = torch.einsum("tef,edf,te->td", up, w["ed"], full)
    a, b = F.linear(h, torch.cat([w["sg"], w["su"]])).chunk(2, -1)
    out = site("shared", lambda: F.silu(a) * b @ w["sd"].t() + out, lambda: F.silu(b) * a @ w["sd"].t() + out)
    x = torch.add(x, out.view(B, T, D))
    y = F.rms_norm(x, (D,), w["nf"], 1e-6) @ w["head"].t()
    return y, F.cross_entropy(y.flatten(0, 1), labels.flatten())


# --- grouped queries, norms of queries and keys, a window, a sink, capped logits

def window_weights():
    w = rand(271, emb=(V, D), n=D, q=(D, D), k=(D // 2, D), v=(D // 2, D), o=(D, D), nq=4, nk=4, m=D, g=(2 * D, D), u=(2 * D, D), d=(D, 2 * D), nf=D, head=(V, D))
    w["sink"] = torch.tensor([0.4, -0.3, 0.9, 0.1])
    w["emb"] *= 3
    return w


def window_angles():
    a = torch.outer(torch.arange(T), 50. ** -torch.arange(0, 1, 0.5))
    return a.cos(), a.sin()


def window_bench(w, site):
    ids, labels = tokens(271)
    x = F.embedding(ids, w["emb"])
    h = F.rms_norm(x, (D,), w["n"], 1e-6)
    q = F.linear(h, w["q"]).view(B, T, 4, 4).transpose(1, 2)
    k, v = (F.linear(h, w[n]).view(B, T, 2, 4).transpose(1, 2) for n in "kv")
    cos, sin = (torch.cat([t, t], 1).to(x.dtype) for t in window_angles())

    def turn(x):
        return x * cos + torch.cat([-x[..., 2:], x[..., :2]], -1) * sin
    q, k = site("norms", lambda: (turn(F.rms_norm(q, (4,), w["nq"], 1e-6)), turn(F.rms_norm(k, (4,), w["nk"], 1e-6))))
    k, v = site("repeat", lambda: (k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)))
    s = site("root", lambda: torch.matmul(q, k.transpose(2, 3)) * 4 ** -0.5)
    at = torch.arange(T)
    mask = site("window", lambda: (at[:, None] >= at) & (at[:, None] - at < 3))
    s = s + torch.where(mask, 0., torch.finfo(s.dtype).min).to(s.dtype)
    s = site("sinks", lambda: torch.cat([s, w["sink"].to(s.dtype).view(1, 4, 1, 1).expand(B, 4, T, 1)], -1).softmax(-1)[..., :-1])
    x = x + F.linear(joined(s @ v), w["o"])
    h = F.rms_norm(x, (D,), w["m"], 1e-6)
    a, u = F.linear(h, w["g"]), F.linear(h, w["u"])
    x = x + F.linear(site("clamped", lambda: a.clamp(max=0.4) * torch.sigmoid(1.7 * a.clamp(max=0.4)) * (u.clamp(-0.4, 0.4) + 1)), w["d"])
    y = F.linear(F.rms_norm(x, (D,), w["nf"], 1e-6), w["head"])
    y = site("capped", lambda: torch.tanh(y / 3) * 3)
    return y, F.cross_entropy(y.view(-1, V).float(), labels.reshape(-1))


def window_port(w, site):
    ids, labels = tokens(271)
    x = w["emb"][ids]
    h = F.rms_norm(x, (D,), w["n"], 1e-6)
    q, k, v = (h @ torch.cat([w["q"], w["k"], w["v"]]).t()).split([D, D // 2, D // 2], -1)
    q, k, v = q.view(B, T, 4, 4), k.view(B, T, 2, 4), v.view(B, T, 2, 4)
    cos, sin = (t.to(x.dtype)[:, None] for t in window_angles())

    def turn(x):
        a, b = x.chunk(2, -1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

    def norm(x, n):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * n
    q, k = site("norms", lambda: (turn(norm(q, w["nq"])), turn(norm(k, w["nk"]))), lambda: (norm(turn(q), w["nq"]), norm(turn(k), w["nk"])))
    k, v = site("repeat", lambda: tuple(t[:, :, :, None].expand(B, T, 2, 2, 4).flatten(2, 3) for t in (k, v)), lambda: (k.repeat(1, 1, 2, 1), v.repeat(1, 1, 2, 1)))
    s = site("root", lambda: torch.einsum("bqhd,bkhd->bhqk", q / 2, k), lambda: torch.einsum("bqhd,bkhd->bhqk", q / 4, k))
    at = torch.arange(T)
    mask = site("window", lambda: causal() & ~causal().tril(-3), lambda: causal() & ~causal().tril(-4))
    s = s.masked_fill(~mask, float("-inf"))

    def sinks():
        top = torch.maximum(s.amax(-1, keepdim=True), w["sink"].to(s.dtype).view(4, 1, 1))
        e = torch.exp(s - top)
        return e / (e.sum(-1, keepdim=True) + torch.exp(w["sink"].to(s.dtype).view(4, 1, 1) - top))
    p = site("sinks", sinks, lambda: torch.softmax(s, -1))
    x = torch.einsum("bhqk,bkhd->bqhd", p, v).flatten(2) @ w["o"].t() + x
    h = F.rms_norm(x, (D,), w["m"], 1e-6)
    a, u = F.linear(h, torch.cat([w["g"], w["u"]])).split(2 * D, -1)

    def clamped(most):
        b = torch.minimum(a, torch.tensor(most, dtype=a.dtype))
        c = torch.clip(u, -0.4, most)
        return torch.addcmul(b * torch.sigmoid(b * 1.7), b * torch.sigmoid(b * 1.7), c)
    x = site("clamped", lambda: clamped(0.4), lambda: clamped(0.7)) @ w["d"].t() + x
    y = F.rms_norm(x, (D,), w["nf"], 1e-6) @ w["head"].t()
    y = site("capped", lambda: 3 * torch.tanh(y * (1 / 3)), lambda: torch.tanh(y * (1 / 3)))
    return y, F.cross_entropy(y.flatten(0, 1).float(), labels.flatten())


# --- Transformer-XL: positions that are relative to each query, by a shift; a memory before the text

def xl_weights():
    w = rand(281, emb=(V, D), mem=(B, 3, D), q=(D, D), kv=(2 * D, D), r=(D, D), o=(D, D), n=D, nb=D, up=(2 * D, D), upb=2 * D, down=(D, 2 * D), downb=D, m=D, mb=D, outb=V)
    w["u"], w["t"] = (0.3 * torch.randn(H, D // H, generator=torch.Generator().manual_seed(282 + i)) for i in range(2))
    w["emb"] *= 3
    return w


def xl_bench(w, site):
    ids, labels = tokens(281)
    x = F.embedding(ids, w["emb"])
    c = site("memory", lambda: torch.cat([w["mem"], x], 1))
    q = F.linear(x, w["q"]).view(B, T, H, -1)
    k, v = (t.view(B, T + 3, H, -1) for t in F.linear(c, w["kv"]).chunk(2, -1))
    a = site("order", lambda: torch.outer(torch.arange(T + 2, -1, -1.), 1 / 100 ** (torch.arange(0, D, 2.) / D)))
    r = F.linear(torch.cat([a.sin(), a.cos()], -1).to(x.dtype), w["r"]).view(T + 3, H, -1)
    ac = site("content", lambda: torch.einsum("bihd,bjhd->bhij", q + w["u"], k))
    bd = torch.einsum("bihd,jhd->bhij", q + w["t"], r)
    bd = site("shifted", lambda: F.pad(bd, (1, 0)).view(B, H, T + 4, T)[:, :, 1:].reshape(B, H, T, T + 3))
    s = (ac + bd) / math.sqrt(D // H)
    s = s.masked_fill(torch.ones(T, T + 3).triu(4).bool(), float("-inf"))
    h = torch.einsum("bhij,bjhd->bihd", site("softmax", lambda: F.softmax(s, 3)), v).reshape(B, T, D)
    x = site("after", lambda: F.layer_norm(x + F.linear(h, w["o"]), (D,), w["n"], w["nb"]))
    h = F.linear(F.relu(F.linear(x, w["up"], w["upb"])), w["down"], w["downb"])
    x = F.layer_norm(x + h, (D,), w["m"], w["mb"])
    y = F.linear(x, w["emb"], w["outb"])
    return y, F.cross_entropy(y.view(-1, V), labels.reshape(-1))


def xl_port(w, site):
    ids, labels = tokens(281)
    x = w["emb"][ids]
    c = site("memory", lambda: torch.hstack([w["mem"], x]), lambda: torch.hstack([w["mem"].flip(1), x]))
    q = heads(x @ w["q"].t())
    k, v = (t.reshape(B, T + 3, H, -1).transpose(1, 2) for t in (c @ w["kv"][:D].t(), c @ w["kv"][D:].t()))
    rate = torch.exp(-math.log(100) * torch.arange(0, D, 2.) / D)
    a = site("order", lambda: torch.arange(T + 3.).flip(0)[:, None] * rate, lambda: torch.arange(T + 3.)[:, None] * rate)
    r = torch.matmul(torch.hstack([a.sin(), a.cos()]).to(x.dtype), w["r"].t()).view(T + 3, H, -1).permute(1, 2, 0)
    ac = site("content", lambda: torch.matmul(q + w["u"][:, None], k.mT), lambda: torch.matmul(q + w["t"][:, None], k.mT))
    bd = (q + w["t"][:, None]) @ r
    far = (torch.arange(T)[:, None] - torch.arange(T + 3) + 3).clamp(0, T + 2)
    far = (T + 2 - far).expand(B, H, T, T + 3)
    bd = site("shifted", lambda: bd.gather(3, far), lambda: bd.gather(3, (far + 1).clamp(max=T + 2)))
    s = torch.add(ac, bd) * (D // H) ** -0.5
    s = torch.where(torch.ones(T, T + 3).tril(3).bool(), s, torch.tensor(-1e9, dtype=s.dtype))
    h = (site("softmax", lambda: torch.exp(s - s.logsumexp(-1, keepdim=True)), lambda: torch.exp(s - s.logsumexp(-2, keepdim=True))) @ v).transpose(1, 2).flatten(2)
    o = F.linear(h, w["o"])
    x = site("after", lambda: F.layer_norm(o + x, (D,), w["n"], w["nb"]), lambda: x + F.layer_norm(o, (D,), w["n"], w["nb"]))
    h = torch.addmm(w["downb"], torch.addmm(w["upb"], x.flatten(0, 1), w["up"].t()).clamp(min=0), w["down"].t()).view(B, T, D)
    x = F.layer_norm(h + x, (D,), w["m"], w["mb"])
    y = x @ w["emb"].t() + w["outb"]
    return y, F.cross_entropy(y.flatten(0, 1), labels.flatten())


FAMILIES = {
    "whisper": (whisper_weights, whisper_bench, whisper_port, ["stride", "waves", "heard", "crossed", "gelu", "last"]),
    "retention": (retention_weights, retention_bench, retention_port, ["shift", "mix", "decay", "groups", "gate", "square"]),
    "wavenet": (wavenet_weights, wavenet_bench, wavenet_port, ["padded", "holes", "gate", "skips", "scaled", "relu"]),
    "dlrm": (dlrm_weights, dlrm_bench, dlrm_port, ["bottom", "bag", "pairs", "joined", "top", "loss"]),
    "points": (points_weights, points_bench, points_port, ["most", "unit", "turned", "batch", "pool", "classes"]),
    "vae": (vae_weights, vae_bench, vae_port, ["second", "draw", "widen", "seen", "kl", "elbo"]),
    "experts": (experts_weights, experts_bench, experts_port, ["score", "picked", "weigh", "normed", "factor", "shared"]),
    "window": (window_weights, window_bench, window_port, ["norms", "repeat", "root", "window", "sinks", "clamped", "capped"]),
    "xl": (xl_weights, xl_bench, xl_port, ["memory", "order", "content", "shifted", "softmax", "after"]),
}
