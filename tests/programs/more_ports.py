"""More networks, each as it is usually written (the bench) and as a port writes it (the device); as in ports.py.

Written after the judge had been taught on ports.py: what it said of them first stands in RESULTS.md."""
import math

import torch
import torch.nn.functional as F

from ports import B, D, H, T, V, causal, heads, joined, rand, tokens


# --- T5: relative positions by buckets, attention that is not scaled, a second text attended to

def t5_weights():
    w = rand(31, emb=(V, D), rel=(8, H), nf=D)
    w["emb"] *= 4
    w["rel"] *= 3
    for k in "ed":
        w.update({f"{n}{k}": v for n, v in rand(32 + ord(k), na=D, nb=D, q=(D, D), k=(D, D), v=(D, D), o=(D, D), wi=(2 * D, D), wg=(2 * D, D), wo=(D, 2 * D)).items()})
    w.update({f"{n}x": v for n, v in rand(35, n=D, q=(D, D), k=(D, D), v=(D, D), o=(D, D)).items()})
    return w


def t5_bench(w, site):
    ids, labels = tokens(31)

    def norm(x, n):
        return n * (x * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6).to(x.dtype))

    def attend(x, y, k, bias):
        q, u, v = heads(F.linear(x, w["q" + k])), heads(F.linear(y, w["k" + k])), heads(F.linear(y, w["v" + k]))
        s = q @ u.transpose(2, 3)
        s = s if bias is None else s + bias
        return F.linear(joined(F.softmax(s.float(), -1).to(x.dtype) @ v), w["o" + k])

    def forward(x, k):
        h = norm(x, w["nb" + k])
        h = site("act", lambda: F.gelu(F.linear(h, w["wg" + k]), approximate="tanh") * F.linear(h, w["wi" + k]))
        return x + F.linear(h, w["wo" + k])
    at = torch.arange(T)
    far = site("buckets", lambda: (at[:, None] - at[None]).clamp(-3, 4) + 3)
    rel = F.embedding(far, w["rel"]).permute(2, 0, 1)[None]
    x = F.embedding(ids.flip(1), w["emb"])
    x = x + site("scores", lambda: attend(norm(x, w["nae"]), norm(x, w["nae"]), "e", rel))
    x = forward(x, "e")
    z = F.embedding(ids, w["emb"])
    mask = torch.where(causal(), 0., -1e9).to(z.dtype)
    z = z + attend(norm(z, w["nad"]), norm(z, w["nad"]), "d", mask)
    z = z + site("cross", lambda: attend(norm(z, w["nx"]), x, "x", None))
    z = forward(z, "d")
    y = site("tied", lambda: F.linear(norm(z, w["nf"]) * D ** -0.5, w["emb"]))
    return y, F.cross_entropy(y.view(-1, V).float(), labels.reshape(-1))


def t5_port(w, site):
    ids, labels = tokens(31)

    def norm(x, n):
        return F.rms_norm(x, (D,), n, 1e-6)

    def attend(x, y, k, bias, causally=False, scale=1.):
        q, (u, v) = heads(F.linear(x, w["q" + k])), (heads(t) for t in F.linear(y, torch.cat([w["k" + k], w["v" + k]])).chunk(2, -1))
        bias = torch.zeros(T, T, dtype=x.dtype).masked_fill(~causal(), float("-inf")) if causally else bias
        return F.linear(joined(F.scaled_dot_product_attention(q, u, v, attn_mask=bias, scale=scale)), w["o" + k])

    def forward(x, k):
        h = norm(x, w["nb" + k])
        h = site("act", lambda: F.gelu(h @ w["wg" + k].t(), approximate="tanh") * (h @ w["wi" + k].t()), lambda: F.gelu(h @ w["wg" + k].t()) * (h @ w["wi" + k].t()) * 1.01)
        return torch.addmm(x.flatten(0, 1), h.flatten(0, 1), w["wo" + k].t()).view(B, T, D)
    at = torch.arange(T)
    far = site("buckets", lambda: torch.clamp(at.unsqueeze(1) - at, min=-3, max=4) + 3, lambda: torch.clamp(at - at.unsqueeze(1), min=-3, max=4) + 3)
    rel = w["rel"].t()[:, far][None]
    x = w["emb"][ids.flip(1)]
    x = site("scores", lambda: attend(norm(x, w["nae"]), norm(x, w["nae"]), "e", rel), lambda: attend(norm(x, w["nae"]), norm(x, w["nae"]), "e", rel, scale=None)) + x
    x = forward(x, "e")
    z = w["emb"][ids]
    z = attend(norm(z, w["nad"]), norm(z, w["nad"]), "d", None, True) + z
    z = site("cross", lambda: attend(norm(z, w["nx"]), x, "x", None), lambda: attend(norm(z, w["nx"]), z, "x", None)) + z
    z = forward(z, "d")
    y = site("tied", lambda: (norm(z, w["nf"]) / math.sqrt(D)) @ w["emb"].t(), lambda: norm(z, w["nf"]) @ w["emb"].t())
    return y, F.cross_entropy(y.flatten(0, 1).float(), labels.flatten())


# --- Mamba: a short causal convolution, and a scan that is a loop, or a product with a matrix of decays

def mamba_weights():
    w = rand(41, emb=(V, D), n=D, inp=(4 * D, D), conv=(2 * D, 1, 3), convb=2 * D, x=(2 + 2 * 4, 2 * D), dt=(2 * D, 2), dtb=2 * D, a=(2 * D, 4), d=2 * D, out=(D, 2 * D), nf=D)
    w["emb"] *= 4
    return w


def mamba_bench(w, site):
    ids, labels = tokens(41)
    x = F.embedding(ids, w["emb"])
    u, z = F.linear(F.rms_norm(x, (D,), w["n"], 1e-5), w["inp"]).chunk(2, -1)
    u = site("conv", lambda: F.conv1d(u.transpose(1, 2), w["conv"], w["convb"], padding=2, groups=2 * D)[..., :T].transpose(1, 2))
    u = site("silu", lambda: F.silu(u))
    dt, b, c = F.linear(u, w["x"]).split([2, 4, 4], -1)
    dt = site("softplus", lambda: F.softplus(F.linear(dt, w["dt"], w["dtb"])))
    a = site("decay", lambda: -torch.exp(w["a"]))
    h = torch.zeros(B, 2 * D, 4, dtype=x.dtype)
    out = []
    for t in range(T):
        h = h * torch.exp(dt[:, t, :, None] * a) + (dt[:, t] * u[:, t])[..., None] * b[:, t, None]
        out.append((h * c[:, t, None]).sum(-1))
    s = torch.stack(out, 1)
    s = site("skip", lambda: s + u * w["d"])
    s = site("gate", lambda: s * F.silu(z))
    x = x + F.linear(s, w["out"])
    y = F.linear(F.rms_norm(x, (D,), w["nf"], 1e-5), w["emb"])
    return y, F.cross_entropy(y.view(-1, V), labels.reshape(-1))


def mamba_port(w, site):
    ids, labels = tokens(41)
    x = F.embedding(ids, w["emb"])
    h = F.rms_norm(x, (D,), w["n"], 1e-5)
    u, z = F.linear(h, w["inp"][:2 * D]), F.linear(h, w["inp"][2 * D:])

    def conv(k):
        v = F.pad(u, (0, 0, 2, 0))
        return sum(v[:, i:i + T] * k[:, 0, i] for i in range(3)) + w["convb"]
    u = site("conv", lambda: conv(w["conv"]), lambda: conv(w["conv"].flip(2)))
    u = site("silu", lambda: u * torch.sigmoid(u), lambda: u * torch.tanh(u))
    p = F.linear(u, w["x"])
    dt, b, c = p[..., :2], p[..., 2:6], p[..., 6:]
    e = torch.matmul(dt, w["dt"].t()) + w["dtb"]
    dt = site("softplus", lambda: torch.log1p(torch.exp(e)), lambda: torch.exp(e))
    a = site("decay", lambda: -w["a"].exp(), lambda: -w["a"].abs())
    g = torch.cumsum(dt[..., None] * a, 1)
    m = torch.exp((g[:, :, None] - g[:, None]).masked_fill(~causal()[None, :, :, None, None], float("-inf")))
    s = torch.einsum("btsdn,bsd,bsn,btn->btd", m, dt * u, b, c)
    s = site("skip", lambda: torch.addcmul(s, u, w["d"]), lambda: torch.addcmul(s, s, w["d"]))
    s = site("gate", lambda: F.silu(z) * s, lambda: z * torch.sigmoid(s))
    x = F.linear(s, w["out"]) + x
    y = F.linear(F.rms_norm(x, (D,), w["nf"], 1e-5), w["emb"])
    return y, F.cross_entropy(y.flatten(0, 1), labels.flatten())


# --- Swin: windows, shifted by a roll, with a mask and a table of relative positions

def swin_weights():
    return rand(51, patch=(D, 3, 2, 2), patchb=D, n=D, nb=D, qkv=(3 * D, D), qkvb=3 * D, table=(9, H), o=(D, D), ob=D, m=4 * D, mb=4 * D, merge=(2 * D, 4 * D), head=(5, 2 * D))


def swin_input(w):
    g = torch.Generator().manual_seed(52)
    return torch.randn(2, 3, 8, 8, generator=g).to(w["head"].dtype), torch.randint(0, 5, (2,), generator=g)


def swin_index():
    a = torch.stack(torch.meshgrid(torch.arange(2), torch.arange(2), indexing="ij")).flatten(1)
    r = (a[:, :, None] - a[:, None]) + 1
    return r[0] * 3 + r[1]


def swin_mask():
    z = torch.zeros(4, 4)
    z[2], z[3] = 1, 2
    z[:, 2] += 4
    z[:, 3] += 8
    z = z.view(2, 2, 2, 2).permute(0, 2, 1, 3).reshape(4, 4)
    return z[:, None] == z[:, :, None]


def swin_bench(w, site):
    img, labels = swin_input(w)
    x = F.conv2d(img, w["patch"], w["patchb"], stride=2).permute(0, 2, 3, 1)
    h = F.layer_norm(x, (D,), w["n"], w["nb"])
    h = site("roll", lambda: torch.roll(h, (-1, -1), (1, 2)))
    h = site("windows", lambda: h.view(2, 2, 2, 2, 2, D).permute(0, 1, 3, 2, 4, 5).reshape(8, 4, D))
    q, k, v = F.linear(h, w["qkv"], w["qkvb"]).view(8, 4, 3, H, D // H).permute(2, 0, 3, 1, 4)
    s = q * (D // H) ** -0.5 @ k.transpose(2, 3)
    s = site("table", lambda: s + w["table"][swin_index()].permute(2, 0, 1))
    s = site("mask", lambda: (s.view(2, 4, H, 4, 4) + torch.where(swin_mask(), 0., -100.).to(s.dtype)[:, None]).view(8, H, 4, 4))
    a = (F.softmax(s, -1) @ v).transpose(1, 2).reshape(8, 4, D)
    a = F.linear(a, w["o"], w["ob"]).view(2, 2, 2, 2, 2, D).permute(0, 1, 3, 2, 4, 5).reshape(2, 4, 4, D)
    x = x + site("back", lambda: torch.roll(a, (1, 1), (1, 2)))
    p = site("merge", lambda: torch.cat([x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]], -1))
    p = F.linear(F.layer_norm(p, (4 * D,), w["m"], w["mb"]), w["merge"])
    y = F.linear(p.mean((1, 2)), w["head"])
    return y, F.cross_entropy(y, labels)


def swin_port(w, site):
    img, labels = swin_input(w)
    x = F.linear(img.view(2, 3, 4, 2, 4, 2).permute(0, 2, 4, 1, 3, 5).reshape(2, 4, 4, 12), w["patch"].flatten(1), w["patchb"])
    h = F.layer_norm(x, (D,), w["n"], w["nb"])
    h = site("roll", lambda: torch.cat([h[:, 1:], h[:, :1]], 1).roll(-1, 2), lambda: torch.cat([h[:, -1:], h[:, :-1]], 1).roll(1, 2))
    h = site("windows", lambda: torch.stack([h[:, i:i + 2, j:j + 2].flatten(1, 2) for i in (0, 2) for j in (0, 2)], 1).flatten(0, 1),
             lambda: torch.stack([h[:, i:i + 2, j:j + 2].transpose(1, 2).flatten(1, 2) for i in (0, 2) for j in (0, 2)], 1).flatten(0, 1))
    q, k, v = (t.view(8, 4, H, -1).transpose(1, 2) for t in F.linear(h, w["qkv"], w["qkvb"]).split(D, -1))
    s = torch.matmul(q, k.mT) / math.sqrt(D // H)
    s = site("table", lambda: s + w["table"].t()[:, swin_index()], lambda: s + w["table"].t()[:, swin_index().t()])
    s = site("mask", lambda: s.masked_fill(~swin_mask().repeat(2, 1, 1)[:, None], float("-inf")), lambda: s.masked_fill(~swin_mask().flip(0).repeat(2, 1, 1)[:, None], float("-inf")))
    a = torch.matmul(F.softmax(s, -1), v).transpose(1, 2).flatten(2)
    a = F.linear(a, w["o"], w["ob"]).view(2, 2, 2, 2, 2, D).transpose(2, 3).reshape(2, 4, 4, D)
    x = site("back", lambda: a.roll((1, 1), (1, 2)), lambda: a.roll((1, 0), (1, 2))) + x
    p = site("merge", lambda: x.view(2, 2, 2, 2, 2, D).permute(0, 1, 3, 4, 2, 5).flatten(3), lambda: x.view(2, 2, 2, 2, 2, D).permute(0, 1, 3, 2, 4, 5).flatten(3))
    p = F.layer_norm(p, (4 * D,), w["m"], w["mb"]) @ w["merge"].t()
    y = F.linear(p.flatten(1, 2).mean(1), w["head"])
    return y, F.cross_entropy(y, labels)


# --- ConvNeXt: channels last against channels first

def convnext_weights():
    w = rand(61, stem=(D, 3, 2, 2), stemb=D, dw=(D, 1, 3, 3), dwb=D, n=D, nb=D, up=(4 * D, D), upb=4 * D, down=(D, 4 * D), downb=D, ns=D, nf=D, nfb=D, head=(5, D), headb=5)
    return w


def convnext_bench(w, site):
    img, labels = swin_input(w)
    x = F.conv2d(img, w["stem"], w["stemb"], stride=2)
    h = site("depthwise", lambda: F.conv2d(x, w["dw"], w["dwb"], padding=1, groups=D))
    h = h.permute(0, 2, 3, 1)
    h = site("norm", lambda: F.layer_norm(h, (D,), w["n"], w["nb"], 1e-6))
    h = site("gelu", lambda: F.gelu(F.linear(h, w["up"], w["upb"])))
    h = F.linear(h, w["down"], w["downb"])
    h = site("scale", lambda: w["ns"] * h)
    x = site("residual", lambda: x + h.permute(0, 3, 1, 2))
    p = site("pool", lambda: F.layer_norm(x.mean((-2, -1)), (D,), w["nf"], w["nfb"], 1e-6))
    y = F.linear(p, w["head"], w["headb"])
    return y, site("smooth", lambda: F.cross_entropy(y, labels, label_smoothing=0.1))


def convnext_port(w, site):
    img, labels = swin_input(w)
    x = F.conv2d(img, w["stem"], w["stemb"], stride=2)

    def depthwise(k):
        v = F.pad(x, (1, 1, 1, 1))
        return sum(v[:, :, i:i + 4, j:j + 4] * k[:, 0, i, j, None, None] for i in range(3) for j in range(3)) + w["dwb"][:, None, None]
    h = site("depthwise", lambda: depthwise(w["dw"]), lambda: depthwise(w["dw"].transpose(2, 3)))

    def norm(h, axis):
        m = h.mean(axis, keepdim=True)
        v = (h - m).pow(2).mean(axis, keepdim=True)
        return (h - m) / torch.sqrt(v + 1e-6) * w["n"][:, None, None] + w["nb"][:, None, None]
    h = site("norm", lambda: norm(h, 1), lambda: norm(h, (1, 2, 3)))
    h = F.conv2d(h, w["up"][:, :, None, None], w["upb"])
    h = site("gelu", lambda: 0.5 * h * (1 + torch.erf(h / math.sqrt(2))), lambda: h * torch.sigmoid(1.702 * h))
    h = F.conv2d(h, w["down"][:, :, None, None], w["downb"])
    h = site("scale", lambda: h * w["ns"][:, None, None], lambda: h * 1.)
    x = site("residual", lambda: h + x, lambda: h + h)
    p = site("pool", lambda: F.layer_norm(x.flatten(2).mean(2), (D,), w["nf"], w["nfb"], 1e-6), lambda: F.layer_norm(x.flatten(2).mT, (D,), w["nf"], w["nfb"], 1e-6).mean(1))
    y = torch.addmm(w["headb"], p, w["head"].t())
    l = F.log_softmax(y, -1)

    def smooth(e):
        return (-(1 - e) * l.gather(1, labels[:, None])[:, 0] - e * l.mean(1)).mean()
    return y, site("smooth", lambda: smooth(0.1), lambda: smooth(0.01))


# --- CLIP: two towers and a loss both ways

def clip_weights():
    w = rand(71, emb=(V, D), pos=(T, D), patch=(D, 3, 4, 4), cls=(1, 1, D), vpos=(5, D), t=(D, D), v=(D, D), nt=D, bt=D, nv=D, bv=D)
    for k in "tv":
        w.update({f"{n}{k}": v for n, v in rand(72 + ord(k), n0=D, b0=D, qkv=(3 * D, D), qkvb=3 * D, o=(D, D), ob=D).items()})
    w["scale"] = torch.tensor([1.5])
    return w


def clip_bench(w, site):
    ids, _ = tokens(71)
    g = torch.Generator().manual_seed(73)
    img = torch.randn(2, 3, 8, 8, generator=g).to(w["emb"].dtype)

    def block(x, k, mask):
        n = x.shape[1]
        h = F.layer_norm(x, (D,), w["n0" + k], w["b0" + k])
        q, u, v = (t.view(2, n, H, -1).transpose(1, 2) for t in F.linear(h, w["qkv" + k], w["qkvb" + k]).chunk(3, -1))
        s = q * (D // H) ** -0.5 @ u.transpose(-1, -2)
        s = s if mask is None else s + mask
        return x + F.linear((F.softmax(s, -1) @ v).transpose(1, 2).reshape(2, n, D), w["o" + k], w["ob" + k])
    x = F.embedding(ids, w["emb"]) + w["pos"]
    x = site("causal", lambda: block(x, "t", torch.full((T, T), float("-inf"), dtype=x.dtype).triu(1)))
    x = F.layer_norm(x, (D,), w["nt"], w["bt"])
    t = site("pooled", lambda: x[torch.arange(2), ids.argmax(-1)]) @ w["t"].t()
    z = F.conv2d(img, w["patch"], stride=4).flatten(2).transpose(1, 2)
    z = site("positions", lambda: torch.cat([w["cls"].expand(2, -1, -1), z], 1) + w["vpos"])
    z = block(z, "v", None)
    v = F.linear(F.layer_norm(z[:, 0], (D,), w["nv"], w["bv"]), w["v"])
    t, v = site("unit", lambda: (t / t.norm(dim=-1, keepdim=True), v / v.norm(dim=-1, keepdim=True)))
    y = site("scale", lambda: w["scale"].exp() * v @ t.t())
    return y, site("both", lambda: (F.cross_entropy(y, torch.arange(2)) + F.cross_entropy(y.t(), torch.arange(2))) / 2)


def clip_port(w, site):
    ids, _ = tokens(71)
    g = torch.Generator().manual_seed(73)
    img = torch.randn(2, 3, 8, 8, generator=g).to(w["emb"].dtype)

    def block(x, k, is_causal):
        n = x.shape[1]
        h = F.layer_norm(x, (D,), w["n0" + k], w["b0" + k])
        q, u, v = F.linear(h, w["qkv" + k], w["qkvb" + k]).view(2, n, 3, H, -1).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, u, v, is_causal=is_causal)
        return F.linear(a.transpose(1, 2).flatten(2), w["o" + k], w["ob" + k]) + x
    x = F.embedding(ids, w["emb"]) + F.embedding(torch.arange(T), w["pos"])
    x = site("causal", lambda: block(x, "t", True), lambda: block(x, "t", False))
    x = F.layer_norm(x, (D,), w["nt"], w["bt"])
    t = F.linear(site("pooled", lambda: torch.stack([x[i, ids[i].argmax()] for i in range(2)]), lambda: x[:, -1] * 1.), w["t"])
    z = F.linear(F.unfold(img, 4, stride=4).transpose(1, 2), w["patch"].flatten(1))
    z = site("positions", lambda: torch.cat([w["cls"].repeat(2, 1, 1), z], 1) + w["vpos"][None], lambda: torch.cat([w["cls"].repeat(2, 1, 1), z + w["vpos"][1:]], 1))
    z = block(z, "v", False)
    v = torch.matmul(F.layer_norm(z, (D,), w["nv"], w["bv"])[:, 0], w["v"].t())
    t, v = site("unit", lambda: (F.normalize(t, dim=-1), F.normalize(v, dim=-1)), lambda: (F.normalize(t, dim=0), F.normalize(v, dim=-1)))
    y = site("scale", lambda: (v @ t.t()) * torch.exp(w["scale"]), lambda: (v @ t.t()) * w["scale"])
    n = torch.arange(2)
    return y, site("both", lambda: 0.5 * F.cross_entropy(y, n) + 0.5 * F.cross_entropy(y.mT, n), lambda: F.cross_entropy(y, n))


# --- DiT: a time step that modulates the norms

def dit_weights():
    return rand(81, x=(D, 12), xb=D, t1=(D, D), t1b=D, t2=(D, D), t2b=D, y=(5, D), mod=(6 * D, D), modb=6 * D, qkv=(3 * D, D), o=(D, D), up=(2 * D, D), upb=2 * D, down=(D, 2 * D), downb=D, out=(12, D), outb=12)


def dit_input(w):
    g = torch.Generator().manual_seed(82)
    return torch.randn(2, 3, 6, 4, generator=g).to(w["x"].dtype), torch.tensor([3., 0.7]), torch.tensor([1, 4]), torch.randn(2, 3, 6, 4, generator=g).to(w["x"].dtype)


def dit_bench(w, site):
    img, when, kind, target = dit_input(w)
    dtype = img.dtype
    x = F.linear(torch.einsum("nchpwq->nhwpqc", img.view(2, 3, 3, 2, 2, 2)).reshape(2, 6, 12), w["x"], w["xb"])
    f = torch.exp(-math.log(100.) * torch.arange(D // 2) / (D // 2))
    e = site("waves", lambda: torch.cat([torch.cos(when[:, None] * f), torch.sin(when[:, None] * f)], -1)).to(dtype)
    c = F.linear(F.silu(F.linear(e, w["t1"], w["t1b"])), w["t2"], w["t2b"])
    c = site("kind", lambda: c + F.embedding(kind, w["y"]))
    s0, g0, a0, s1, g1, a1 = F.linear(F.silu(c), w["mod"], w["modb"]).chunk(6, 1)

    def modulate(x, shift, scale):
        return x * (1 + scale.unsqueeze(1)) + shift.unsqueeze(1)
    h = site("modulate", lambda: modulate(F.layer_norm(x, (D,), eps=1e-6), s0, g0))
    q, k, v = (heads(t) for t in F.linear(h, w["qkv"]).chunk(3, -1))
    a = F.linear(joined(F.softmax(q @ k.transpose(-1, -2) / math.sqrt(D // H), -1) @ v), w["o"])
    x = site("gate", lambda: x + a0.unsqueeze(1) * a)
    h = site("second", lambda: modulate(F.layer_norm(x, (D,), eps=1e-6), s1, g1))
    h = F.linear(F.gelu(F.linear(h, w["up"], w["upb"]), approximate="tanh"), w["down"], w["downb"])
    x = x + a1.unsqueeze(1) * h
    y = F.linear(x, w["out"], w["outb"]).view(2, 3, 2, 2, 2, 3)
    y = site("unpatch", lambda: torch.einsum("nhwpqc->nchpwq", y).reshape(2, 3, 6, 4))
    return y, F.mse_loss(y, target)


def dit_port(w, site):
    img, when, kind, target = dit_input(w)
    dtype = img.dtype
    x = F.linear(img.reshape(2, 3, 3, 2, 2, 2).permute(0, 2, 4, 3, 5, 1).flatten(3).flatten(1, 2), w["x"], w["xb"])
    f = 100. ** (-torch.arange(D // 2) / (D // 2))
    z = torch.outer(when, f)
    e = site("waves", lambda: torch.cat([z.cos(), z.sin()], 1), lambda: torch.cat([z.sin(), z.cos()], 1)).to(dtype)
    h = F.linear(e, w["t1"], w["t1b"])
    c = torch.addmm(w["t2b"], h * h.sigmoid(), w["t2"].t())
    c = site("kind", lambda: w["y"][kind] + c, lambda: w["y"][kind - 1] + c)
    m = F.linear(F.silu(c), w["mod"], w["modb"])[:, None]
    s0, g0, a0, s1, g1, a1 = m.split(D, -1)

    def modulate(x, shift, scale):
        return torch.addcmul(shift, F.layer_norm(x, (D,), eps=1e-6), scale)
    h = site("modulate", lambda: modulate(x, s0, g0 + 1), lambda: modulate(x, s0, g0))
    q, k, v = F.linear(h, w["qkv"]).view(2, 6, 3, H, -1).permute(2, 0, 3, 1, 4)
    a = F.linear(joined(F.scaled_dot_product_attention(q, k, v)), w["o"])
    x = site("gate", lambda: torch.addcmul(x, a, a0), lambda: torch.addcmul(x, a, a1))
    h = site("second", lambda: modulate(x, s1, 1 + g1), lambda: modulate(x, g1, 1 + s1))
    h = torch.addmm(w["downb"], F.gelu(F.linear(h, w["up"], w["upb"]), approximate="tanh").flatten(0, 1), w["down"].t()).view(2, 6, D)
    x = h * a1 + x
    y = F.linear(x, w["out"], w["outb"])
    y = site("unpatch", lambda: y.view(2, 3, 2, 2, 2, 3).permute(0, 5, 1, 3, 2, 4).reshape(2, 3, 6, 4), lambda: y.view(2, 3, 2, 2, 2, 3).permute(0, 5, 1, 4, 2, 3).reshape(2, 3, 6, 4))
    return y, ((y - target).square()).mean()


# --- latent attention (DeepSeek): q and kv through low ranks, positions in a part of each head alone

R = 4       # of a head's D // H + R


def mla_weights():
    w = rand(91, emb=(V, D), na=D, qa=(D // 2, D), nq=D // 2, qb=(H * (D // H + R), D // 2), kva=(D // 2 + R, D), nkv=D // 2, kvb=(2 * D, D // 2), o=(D, D), nf=D)
    w["emb"] *= 4
    return w


def mla_angles():
    return torch.outer(torch.arange(T).float(), 50. ** (-torch.arange(0, R, 2).float() / R))


def mla_bench(w, site):
    ids, labels = tokens(91)
    x = F.embedding(ids, w["emb"])
    n = D // H
    h = F.rms_norm(x, (D,), w["na"], 1e-6)
    q = F.linear(F.rms_norm(F.linear(h, w["qa"]), (D // 2,), w["nq"], 1e-6), w["qb"]).view(B, T, H, n + R).transpose(1, 2)
    qn, qr = q.split([n, R], -1)
    kv, kr = F.linear(h, w["kva"]).split([D // 2, R], -1)
    kv = site("latent", lambda: F.rms_norm(kv, (D // 2,), w["nkv"], 1e-6))
    kn, v = site("parts", lambda: F.linear(kv, w["kvb"]).view(B, T, H, 2 * n).transpose(1, 2).split([n, n], -1))
    a = mla_angles()
    cos, sin = torch.cat([a, a], -1).cos().to(x.dtype), torch.cat([a, a], -1).sin().to(x.dtype)

    def turn(t):
        t = t.view(*t.shape[:-1], R // 2, 2).transpose(-1, -2).reshape(t.shape)
        p, s = t.chunk(2, -1)
        return t * cos + torch.cat([-s, p], -1) * sin
    qr, kr = site("turn", lambda: (turn(qr), turn(kr[:, None])))
    q, k = torch.cat([qn, qr], -1), torch.cat([kn, kr.expand(B, H, T, R)], -1)
    s = site("scale", lambda: q @ k.transpose(2, 3) * (n + R) ** -0.5)
    s = s.masked_fill(~causal(), torch.finfo(s.dtype).min)
    x = site("residual", lambda: x + F.linear(joined(F.softmax(s, -1) @ v), w["o"]))
    y = F.linear(F.rms_norm(x, (D,), w["nf"], 1e-6), w["emb"])
    return y, F.cross_entropy(y[:, :-1].reshape(-1, V), labels[:, :-1].reshape(-1))


def mla_port(w, site):
    ids, labels = tokens(91)
    x = F.embedding(ids, w["emb"])
    n = D // H

    def norm(x, g):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * g
    h = norm(x, w["na"])
    q = (norm(h @ w["qa"].t(), w["nq"]) @ w["qb"].t()).view(B, T, H, n + R)
    qn, qr = q[..., :n], q[..., n:]
    c = F.linear(h, w["kva"])
    kv, kr = c[..., :D // 2], c[..., D // 2:]
    kv = site("latent", lambda: norm(kv, w["nkv"]), lambda: kv * w["nkv"])
    u = F.linear(kv, w["kvb"]).view(B, T, H, 2 * n)
    kn, v = site("parts", lambda: (u[..., :n] * 1., u[..., n:] * 1.), lambda: (u[..., n:] * 1., u[..., :n] * 1.))
    z = torch.polar(torch.ones(T, R // 2), mla_angles())

    def pairs(t):
        return torch.view_as_complex(t.float().reshape(*t.shape[:-1], R // 2, 2).contiguous())

    def turn(t, by):
        return torch.view_as_real(pairs(t) * by).flatten(-2).to(x.dtype)
    qr, kr = site("turn", lambda: (turn(qr, z[:, None]), turn(kr, z)), lambda: (turn(qr, z[:, None]), kr * 1.))
    s = site("scale", lambda: (torch.einsum("bthd,bshd->bhts", qn, kn) + torch.einsum("bthr,bsr->bhts", qr, kr)) / math.sqrt(n + R),
             lambda: (torch.einsum("bthd,bshd->bhts", qn, kn) + torch.einsum("bthr,bsr->bhts", qr, kr)) / math.sqrt(n))
    s = s + torch.full((T, T), float("-inf"), dtype=s.dtype).triu(1)
    a = torch.einsum("bhts,bshd->bthd", F.softmax(s, -1), v).reshape(B, T, D)
    x = site("residual", lambda: F.linear(a, w["o"]) + x, lambda: F.linear(a, w["o"]) + h)
    y = norm(x, w["nf"]) @ w["emb"].t()
    return y, F.cross_entropy(y[:, :-1].flatten(0, 1), labels[:, :-1].flatten())


# --- graph attention: edges gathered and added at their ends, or a dense matrix

def gat_weights():
    return rand(101, w=(D, 6), a=(1, D), b=(1, D), out=(4, D), outb=4)


def gat_input(w):
    g = torch.Generator().manual_seed(102)
    x = torch.randn(9, 6, generator=g).to(w["w"].dtype)
    m = (torch.rand(9, 9, generator=g) < 0.3) & ~torch.eye(9).bool()
    return x, m, torch.randint(0, 4, (9,), generator=g)


def gat_bench(w, site):
    x, m, labels = gat_input(w)
    m = site("loops", lambda: m | torch.eye(9).bool())
    to, of = m.nonzero().t()
    h = F.linear(x, w["w"])
    e = site("ends", lambda: F.linear(h, w["a"])[to, 0] + F.linear(h, w["b"])[of, 0])
    e = site("slope", lambda: F.leaky_relu(e, 0.2))
    p = torch.exp(e - e.max())
    p = site("share", lambda: p / torch.zeros(9, dtype=x.dtype).index_add(0, to, p)[to])
    z = site("gather", lambda: torch.zeros(9, D, dtype=x.dtype).index_add(0, to, p[:, None] * h[of]))
    z = site("elu", lambda: F.elu(z))
    y = F.linear(z, w["out"], w["outb"])
    return y, F.nll_loss(F.log_softmax(y, -1), labels)


def gat_port(w, site):
    x, m, labels = gat_input(w)
    m = site("loops", lambda: torch.logical_or(m, torch.eye(9).bool()), lambda: torch.logical_or(m, m.t()))
    h = x @ w["w"].t()
    s, t = h @ w["a"].t(), h @ w["b"].t()
    e = site("ends", lambda: s + t.t(), lambda: t + s.t())
    e = site("slope", lambda: torch.where(e > 0, e, 0.2 * e), lambda: torch.where(e > 0, e, 0.01 * e))
    e = e.masked_fill(~m, float("-inf"))
    p = site("share", lambda: torch.softmax(e, 1), lambda: torch.softmax(e, 0))
    z = site("gather", lambda: p @ h, lambda: p.t() @ h)
    z = site("elu", lambda: torch.where(z > 0, z, torch.exp(z) - 1), lambda: torch.where(z > 0, z, 1 - torch.exp(z)))
    y = torch.addmm(w["outb"], z, w["out"].t())
    return y, F.cross_entropy(y, labels)


# --- a GRU, and a convolution with gates over its steps

def gru_weights():
    return rand(111, emb=(V, D), wi=(3 * D, D), wh=(3 * D, D), bi=3 * D, bh=3 * D, conv=(2 * D, D, 3), convb=2 * D, n=D, head=(V, D), headb=V)


def gru_bench(w, site):
    ids, labels = tokens(111)
    x = F.embedding(ids, w["emb"]) * 3
    h = torch.zeros(B, D, dtype=x.dtype)
    out = []
    for t in range(T):
        i, g = F.linear(x[:, t], w["wi"], w["bi"]).chunk(3, -1), F.linear(h, w["wh"], w["bh"]).chunk(3, -1)
        r, z = torch.sigmoid(i[0] + g[0]), torch.sigmoid(i[1] + g[1])
        n = site("reset", lambda: torch.tanh(i[2] + r * g[2]))
        h = site("update", lambda: (1 - z) * n + z * h)
        out.append(h)
    s = torch.stack(out, 1)
    c = site("padding", lambda: F.conv1d(F.pad(s.transpose(1, 2), (2, 0)), w["conv"], w["convb"]))
    c = site("glu", lambda: F.glu(c, 1)).transpose(1, 2)
    s = site("residual", lambda: (s + c) * math.sqrt(0.5))
    y = F.linear(site("norm", lambda: s * w["n"] / s.norm(dim=-1, keepdim=True)), w["head"], w["headb"])
    return y, F.cross_entropy(y.view(-1, V), labels.reshape(-1))


def gru_port(w, site):
    ids, labels = tokens(111)
    x = w["emb"][ids] * 3
    gi = F.linear(x, w["wi"], w["bi"])
    h = torch.zeros(B, D, dtype=x.dtype)
    out = []
    for t in range(T):
        gh = torch.addmm(w["bh"], h, w["wh"].t())
        a, b = gi[:, t, :2 * D] + gh[:, :2 * D], gi[:, t, 2 * D:]
        r, z = a.sigmoid().split(D, -1)
        n = site("reset", lambda: torch.addcmul(b, r, gh[:, 2 * D:]).tanh(), lambda: (b + gh[:, 2 * D:]).tanh() * r)
        h = site("update", lambda: torch.lerp(n, h, z), lambda: torch.lerp(h, n, z))
        out.append(h)
    s = torch.cat([t[:, None] for t in out], 1)
    c = site("padding", lambda: F.conv1d(s.mT, w["conv"], w["convb"], padding=2)[..., :T], lambda: F.conv1d(s.mT, w["conv"], w["convb"], padding=2)[..., 2:])
    p, q = c[:, :D], c[:, D:]
    c = site("glu", lambda: p * torch.sigmoid(q), lambda: torch.sigmoid(p) * q).mT
    s = site("residual", lambda: (c + s) / math.sqrt(2), lambda: (c + s) / 2)
    y = F.linear(site("norm", lambda: F.normalize(s, dim=-1) * w["n"], lambda: F.normalize(s, dim=1) * w["n"]), w["head"], w["headb"])
    return y, F.cross_entropy(y.flatten(0, 1), labels.flatten())


FAMILIES = {
    "t5": (t5_weights, t5_bench, t5_port, ["act", "buckets", "scores", "cross", "tied"]),
    "mamba": (mamba_weights, mamba_bench, mamba_port, ["conv", "silu", "softplus", "decay", "skip", "gate"]),
    "swin": (swin_weights, swin_bench, swin_port, ["roll", "windows", "table", "mask", "back", "merge"]),
    "convnext": (convnext_weights, convnext_bench, convnext_port, ["depthwise", "norm", "gelu", "scale", "residual", "pool", "smooth"]),
    "clip": (clip_weights, clip_bench, clip_port, ["causal", "pooled", "positions", "unit", "scale", "both"]),
    "dit": (dit_weights, dit_bench, dit_port, ["waves", "kind", "modulate", "gate", "second", "unpatch"]),
    "mla": (mla_weights, mla_bench, mla_port, ["latent", "parts", "turn", "scale", "residual"]),
    "gat": (gat_weights, gat_bench, gat_port, ["loops", "ends", "slope", "share", "gather", "elu"]),
    "gru": (gru_weights, gru_bench, gru_port, ["reset", "update", "padding", "glu", "norm"]),
}
