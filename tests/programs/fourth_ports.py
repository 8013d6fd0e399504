"""Networks as modules on both sides, with layers of torch.nn on one and by hand on the other; as in ports.py, but that
each side is a class: Side(w) is built before recording begins, side(site) runs.

Written after the judge had been taught on ports.py and halves of more_ports.py and third_ports.py: what it said of
them first stands in RESULTS.md."""
import math

import torch
import torch.nn.functional as F
from torch import nn

from ports import B, D, H, T, V, rand, tokens


def put(module, **tensors):
    """The module with these parameters; names with __ for dots."""
    for name, t in tensors.items():
        *path, last = name.split("__")
        m = module
        for p in path:
            m = getattr(m, p)
        if isinstance(getattr(m, last, None), nn.Parameter):
            setattr(m, last, nn.Parameter(t.detach().clone()))
        else:
            getattr(m, last).copy_(t)
    return module


def lin(w, b=None):
    m = nn.Linear(w.shape[1], w.shape[0], bias=b is not None)
    return put(m, weight=w, **({} if b is None else {"bias": b}))


def norm(w, b, eps=1e-5):
    return put(nn.LayerNorm(w.shape[0], eps), weight=w, bias=b)


def param(t):
    return nn.Parameter(t.detach().clone())


class Linear(nn.Module):
    """A product with the weight turned, as other frameworks keep it."""

    def __init__(self, w, b=None):
        super().__init__()
        self.kernel = param(w.t().contiguous())
        self.shift = None if b is None else param(b)

    def forward(self, x):
        y = torch.matmul(x, self.kernel)
        return y if self.shift is None else y + self.shift


class Norm(nn.Module):
    def __init__(self, w, b, eps=1e-5):
        super().__init__()
        self.gamma, self.beta, self.eps = param(w), param(b), eps

    def forward(self, x):
        m = x.mean(-1, keepdim=True)
        d = x - m
        return d / torch.sqrt((d * d).mean(-1, keepdim=True) + self.eps) * self.gamma + self.beta


class Attention(nn.Module):
    """torch's nn.MultiheadAttention, by hand."""

    def __init__(self, w, k):
        super().__init__()
        self.q, self.k, self.v = (Linear(t, b) for t, b in zip(w["in" + k].chunk(3), w["inb" + k].chunk(3)))
        self.o = Linear(w["out" + k], w["outb" + k])
        self.scale = (D // H) ** -0.5

    def forward(self, q, k, v, mask=None, scale=None):
        def split(x):
            return x.reshape(x.shape[0], -1, H, D // H).transpose(1, 2)
        q, k, v = split(self.q(q)), split(self.k(k)), split(self.v(v))
        s = q @ k.transpose(2, 3) * (scale or self.scale)
        s = s if mask is None else s + mask
        s = s - s.amax(-1, keepdim=True)
        p = s.exp()
        p = p / p.sum(-1, keepdim=True)
        return self.o((p @ v).transpose(1, 2).flatten(2))


def attention(w, k):
    return put(nn.MultiheadAttention(D, H, batch_first=True), in_proj_weight=w["in" + k], in_proj_bias=w["inb" + k],
               out_proj__weight=w["out" + k], out_proj__bias=w["outb" + k])


def attention_weights(seed, k=""):
    return {n + k: v for n, v in rand(seed, **{"in": (3 * D, D), "inb": 3 * D, "out": (D, D), "outb": D}).items()}


# --- Conformer: half steps, gates, convolutions by channel, a loss over alignments

def conformer_weights():
    w = rand(401, first=(D, 5), fb=D, n1=D, b1=D, u1=(2 * D, D), u1b=2 * D, d1=(D, 2 * D), d1b=D, na=D, ba=D, nc=D, bc=D, p1=(2 * D, D, 1),
             p1b=2 * D, dw=(D, 1, 3), nb=D, bb=D, p2=(D, D, 1), n2=D, b2=D, u2=(2 * D, D), u2b=2 * D, d2=(D, 2 * D), d2b=D, nf=D, bf=D, head=(7, D), hb=7)
    return {**w, **attention_weights(402)}


def conformer_input(like):
    g = torch.Generator().manual_seed(403)
    return torch.randn(B, 8, 5, generator=g).to(like.dtype), torch.randint(1, 7, (B, 3), generator=g)


class ConformerBench(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.first = lin(w["first"], w["fb"])
        self.ff1 = nn.Sequential(norm(w["n1"], w["b1"]), lin(w["u1"], w["u1b"]), nn.SiLU(), lin(w["d1"], w["d1b"]))
        self.norm_att, self.att = norm(w["na"], w["ba"]), attention(w, "")
        self.norm_conv = norm(w["nc"], w["bc"])
        self.p1 = put(nn.Conv1d(D, 2 * D, 1), weight=w["p1"], bias=w["p1b"])
        self.dw = put(nn.Conv1d(D, D, 3, padding=1, groups=D, bias=False), weight=w["dw"])
        self.bn = put(nn.BatchNorm1d(D), weight=w["nb"], bias=w["bb"]).to(w["dw"].dtype)
        self.p2 = put(nn.Conv1d(D, D, 1, bias=False), weight=w["p2"])
        self.ff2 = nn.Sequential(norm(w["n2"], w["b2"]), lin(w["u2"], w["u2b"]), nn.SiLU(), lin(w["d2"], w["d2b"]))
        self.last, self.head = norm(w["nf"], w["bf"]), lin(w["head"], w["hb"])

    def forward(self, site):
        x, labels = conformer_input(self.first.weight)
        x = self.first(x)
        x = site("half", lambda: x + 0.5 * self.ff1(x))
        h = self.norm_att(x)
        x = x + self.att(h, h, h, need_weights=False)[0]
        h = self.p1(self.norm_conv(x).transpose(1, 2))
        h = site("glu", lambda: F.glu(h, 1))
        h = site("depthwise", lambda: self.dw(h))
        h = site("batch", lambda: self.bn(h))
        h = site("silu", lambda: F.silu(h))
        x = x + self.p2(h).transpose(1, 2)
        x = x + 0.5 * self.ff2(x)
        y = self.head(site("last", lambda: self.last(x)))
        p = F.log_softmax(y.float(), -1).transpose(0, 1)
        return y, site("ctc", lambda: F.ctc_loss(p, labels, (8, 8), (3, 3)))


class ConformerPort(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.first = Linear(w["first"], w["fb"])
        self.ff1 = nn.ModuleList([Norm(w["n1"], w["b1"]), Linear(w["u1"], w["u1b"]), Linear(w["d1"], w["d1b"])])
        self.ff2 = nn.ModuleList([Norm(w["n2"], w["b2"]), Linear(w["u2"], w["u2b"]), Linear(w["d2"], w["d2b"])])
        self.norm_att, self.att, self.norm_conv = Norm(w["na"], w["ba"]), Attention(w, ""), Norm(w["nc"], w["bc"])
        self.p1, self.p2 = Linear(w["p1"][:, :, 0], w["p1b"]), Linear(w["p2"][:, :, 0])
        self.dw, self.gamma, self.beta = param(w["dw"][:, 0].t()), param(w["nb"]), param(w["bb"])
        self.last, self.head = Norm(w["nf"], w["bf"]), Linear(w["head"], w["hb"])

    def step(self, ff, x):
        h = ff[1](ff[0](x))
        return ff[2](h * torch.sigmoid(h))

    def forward(self, site):
        x, labels = conformer_input(self.gamma)
        x = self.first(x)
        h = self.step(self.ff1, x)
        x = site("half", lambda: x + h / 2, lambda: x + h)
        h = self.norm_att(x)
        x = self.att(h, h, h) + x
        h = self.p1(self.norm_conv(x))
        h = site("glu", lambda: h[..., :D] * torch.sigmoid(h[..., D:]), lambda: torch.sigmoid(h[..., :D]) * h[..., D:])

        def along(left, right):
            z = F.pad(h, (0, 0, left, right))
            return sum(z[:, k:k + 8] * self.dw[k] for k in range(3))
        h = site("depthwise", lambda: along(1, 1), lambda: along(2, 0))

        def batch(eps):
            m = h.mean((0, 1))
            return (h - m) * torch.rsqrt(((h - m) ** 2).mean((0, 1)) + eps) * self.gamma + self.beta
        h = site("batch", lambda: batch(1e-5), lambda: batch(1e-2))
        h = site("silu", lambda: h * torch.sigmoid(h), lambda: F.gelu(h))
        x = self.p2(h) + x
        x = x + self.step(self.ff2, x) / 2
        y = self.head(site("last", lambda: self.last(x), lambda: self.norm_conv(x)))
        p = (y.float() - torch.logsumexp(y.float(), -1, keepdim=True)).transpose(0, 1)
        return y, site("ctc", lambda: (F.ctc_loss(p, labels, (8, 8), (3, 3), reduction="none") / 3).mean(), lambda: F.ctc_loss(p, labels, (8, 8), (3, 3), reduction="none").mean())


# --- DETR: queries that are learned, positions for queries and keys alone, boxes

def detr_weights():
    w = rand(411, patch=(D, 3, 2, 2), pb=D, pos=(16, D), query=(5, D), n1=D, b1=D, n2=D, b2=D, n3=D, b3=D, n4=D, b4=D, up=(2 * D, D), upb=2 * D,
             down=(D, 2 * D), downb=D, cls=(6, D), clsb=6, box=(4, D), boxb=4)
    w["query"], w["pos"] = w["query"] * 2, w["pos"] * 2
    return {**w, **attention_weights(412, "e"), **attention_weights(413, "s"), **attention_weights(414, "c")}


def detr_input(like):
    g = torch.Generator().manual_seed(415)
    return torch.randn(B, 3, 8, 8, generator=g).to(like.dtype), torch.randint(0, 6, (B, 5), generator=g), torch.rand(B, 5, 4, generator=g)


class DetrBench(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.patch = put(nn.Conv2d(3, D, 2, 2), weight=w["patch"], bias=w["pb"])
        self.pos, self.query = param(w["pos"]), param(w["query"])
        self.enc, self.dec, self.cross = (attention(w, k) for k in "esc")
        self.n1, self.n2, self.n3, self.n4 = (norm(w["n" + k], w["b" + k]) for k in "1234")
        self.up, self.down = lin(w["up"], w["upb"]), lin(w["down"], w["downb"])
        self.cls, self.box = lin(w["cls"], w["clsb"]), lin(w["box"], w["boxb"])

    def forward(self, site):
        x, kinds, boxes = detr_input(self.pos)
        x = site("flat", lambda: self.patch(x).flatten(2).transpose(1, 2))
        q = x + self.pos
        x = self.n1(x + site("places", lambda: self.enc(q, q, x, need_weights=False)[0]))
        z, q = site("asked", lambda: (torch.zeros(B, 5, D, dtype=x.dtype), self.query[None] * torch.ones(B, 1, 1, dtype=x.dtype)))
        z = self.n2(z + self.dec(q, q, z, need_weights=False)[0])
        z = site("crossed", lambda: self.n3(z + self.cross(z + self.query, x + self.pos, x, need_weights=False)[0]))
        z = site("after", lambda: self.n4(z + self.down(F.relu(self.up(z)))))
        y = self.cls(z)
        box = site("boxes", lambda: self.box(z).sigmoid())
        far = site("far", lambda: F.l1_loss(box.float(), boxes))
        return y, F.cross_entropy(y.float().transpose(1, 2), kinds) + 5 * far


class DetrPort(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.patch = Linear(w["patch"].flatten(1), w["pb"])
        self.pos, self.query = param(w["pos"]), param(w["query"])
        self.enc, self.dec, self.cross = (Attention(w, k) for k in "esc")
        self.n1, self.n2, self.n3, self.n4 = (Norm(w["n" + k], w["b" + k]) for k in "1234")
        self.up, self.down = Linear(w["up"], w["upb"]), Linear(w["down"], w["downb"])
        self.cls, self.box = Linear(w["cls"], w["clsb"]), Linear(w["box"], w["boxb"])

    def forward(self, site):
        x, kinds, boxes = detr_input(self.pos)
        x = x.reshape(B, 3, 4, 2, 4, 2)
        x = site("flat", lambda: self.patch(x.permute(0, 2, 4, 1, 3, 5).reshape(B, 16, 12)), lambda: self.patch(x.permute(0, 4, 2, 1, 3, 5).reshape(B, 16, 12)))
        q = self.pos + x
        x = self.n1(site("places", lambda: self.enc(q, q, x), lambda: self.enc(q, q, q)) + x)
        q = self.query.expand(B, 5, D)
        z = site("asked", lambda: torch.zeros_like(q) * 1, lambda: q * 1)
        z = self.n2(self.dec(q, q, z) + z)
        z = site("crossed", lambda: self.n3(self.cross(self.query + z, self.pos + x, x) + z), lambda: self.n3(self.cross(z, self.pos + x, x) + z))
        h = self.up(z).clamp(min=0)
        z = site("after", lambda: self.n4(self.down(h) + z), lambda: self.n4(z) + self.down(h))
        y = self.cls(z)
        b = self.box(z)
        box = site("boxes", lambda: 1 / (1 + torch.exp(-b)), lambda: (b / 6 + 0.5).clamp(0, 1))
        far = site("far", lambda: (box.float() - boxes).abs().mean(), lambda: (box.float() - boxes).abs().sum(-1).mean())
        p = torch.log_softmax(y.float().flatten(0, 1), 1)
        return y, far * 5 - p[torch.arange(B * 5), kinds.flatten()].mean()


# --- MBConv: wide inside, one filter a channel, gates a channel, statistics of the training

def mbconv_weights():
    w = rand(421, stem=(8, 3, 3, 3), n0=8, b0=8, expand=(D, 8, 1, 1), n1=D, b1=D, dw=(D, 1, 3, 3), n2=D, b2=D, s1=(4, D), s1b=4, s2=(D, 4), s2b=D,
             project=(8, D, 1, 1), n3=8, b3=8, head=(9, 8), hb=9)
    g = torch.Generator().manual_seed(422)
    for k, n in (("0", 8), ("1", D), ("2", D), ("3", 8)):
        w["m" + k], w["v" + k] = 0.3 * torch.randn(n, generator=g), 0.01 + 0.5 * torch.rand(n, generator=g)
    return w


def mbconv_input(like):
    g = torch.Generator().manual_seed(423)
    return torch.randn(B, 3, 8, 8, generator=g).to(like.dtype), torch.randint(0, 9, (B,), generator=g)


class MbconvBench(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.stem = put(nn.Conv2d(3, 8, 3, 2, 1, bias=False), weight=w["stem"])
        self.expand = put(nn.Conv2d(8, D, 1, bias=False), weight=w["expand"])
        self.dw = put(nn.Conv2d(D, D, 3, 1, 1, groups=D, bias=False), weight=w["dw"])
        self.project = put(nn.Conv2d(D, 8, 1, bias=False), weight=w["project"])
        self.norms = nn.ModuleList(put(nn.BatchNorm2d(len(w["n" + k]), eps=1e-3).to(w["n0"].dtype), weight=w["n" + k], bias=w["b" + k],
                                       running_mean=w["m" + k].detach(), running_var=w["v" + k].detach()) for k in "0123")
        self.s1, self.s2, self.head = lin(w["s1"], w["s1b"]), lin(w["s2"], w["s2b"]), lin(w["head"], w["hb"])
        self.eval()

    def forward(self, site):
        x, labels = mbconv_input(self.s1.weight)
        x = site("stem", lambda: self.stem(x))
        x = F.silu(self.norms[0](x))
        h = self.expand(x)
        h = F.silu(site("eps", lambda: self.norms[1](h)))
        h = self.norms[2](self.dw(h))
        h = site("inner", lambda: F.silu(h))
        s = h.mean((2, 3))
        s = self.s2(site("squeeze", lambda: F.silu(self.s1(s))))
        h = site("gate", lambda: h * torch.sigmoid(s)[:, :, None, None])
        x = site("residual", lambda: x + self.norms[3](self.project(h)))
        y = self.head(site("pool", lambda: F.adaptive_avg_pool2d(x, 1).flatten(1)))
        return y, F.cross_entropy(y.float(), labels, label_smoothing=0.1)


class MbconvPort(nn.Module):
    """Channels last, the norms as one factor and one term."""

    def __init__(self, w):
        super().__init__()
        self.stem, self.expand, self.project = param(w["stem"]), Linear(w["expand"][:, :, 0, 0]), Linear(w["project"][:, :, 0, 0])
        self.dw = param(w["dw"])
        for k in "0123":
            for n in "nb":
                setattr(self, n + k, param(w[n + k]))
            for n in "mv":
                self.register_buffer(n + k, w[n + k].detach())
        self.s1, self.s2, self.head = Linear(w["s1"], w["s1b"]), Linear(w["s2"], w["s2b"]), Linear(w["head"], w["hb"])

    def norm(self, x, k, eps=1e-3):
        f = getattr(self, "n" + k) / torch.sqrt(getattr(self, "v" + k) + eps)
        return x * f + (getattr(self, "b" + k) - getattr(self, "m" + k) * f)

    def forward(self, site):
        x, labels = mbconv_input(self.n0)
        x = site("stem", lambda: F.conv2d(F.pad(x, (1, 1, 1, 1)), self.stem, stride=2), lambda: F.conv2d(F.pad(x, (0, 1, 0, 1)), self.stem, stride=2))
        x = self.norm(x.permute(0, 2, 3, 1), "0")
        x = x * torch.sigmoid(x)
        h = self.expand(x)
        h = site("eps", lambda: self.norm(h, "1"), lambda: self.norm(h, "1", 1e-5))
        h = (h * torch.sigmoid(h)).permute(0, 3, 1, 2)
        h = self.norm(F.conv2d(h, self.dw, padding=1, groups=D).permute(0, 2, 3, 1), "2")
        h = site("inner", lambda: h * torch.sigmoid(h), lambda: F.hardswish(h))
        s = self.s1(h.flatten(1, 2).mean(1))
        s = self.s2(site("squeeze", lambda: s * torch.sigmoid(s), lambda: F.relu(s)))[:, None, None]
        h = site("gate", lambda: torch.sigmoid(s) * h, lambda: F.hardsigmoid(s) * h)
        h = self.project(h)
        x = site("residual", lambda: self.norm(h, "3") + x, lambda: self.norm(h + x, "3"))
        y = self.head(site("pool", lambda: x.mean((1, 2)), lambda: x.flatten(1, 2).amax(1)))
        p = torch.log_softmax(y.float(), 1)
        return y, -(0.9 * p.gather(1, labels[:, None])[:, 0] + 0.1 * p.mean(1)).mean()


# --- Falcon and BLOOM: slopes for positions, one key for all heads, attention and perceptron side by side

def falcon_weights():
    w = rand(431, emb=(V, D), ne=D, be=D, n=D, b=D, n2=D, b2=D, qkv=(D + 2 * (D // 4), D), o=(D, D), up=(4 * D, D), down=(D, 4 * D), nf=D, bf=D)
    w["emb"] *= 3
    return w


class FalconBench(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.emb = put(nn.Embedding(V, D), weight=w["emb"])
        self.n0, self.n1, self.n2, self.nf = (norm(w["n" + k], w["b" + k]) for k in ("e", "", "2", "f"))
        self.qkv, self.o, self.up, self.down = (lin(w[k]) for k in ("qkv", "o", "up", "down"))

    def forward(self, site):
        ids, labels = tokens(431)
        x = site("embedded", lambda: self.n0(self.emb(ids)))
        a, m = self.n1(x), site("second", lambda: self.n2(x))
        q, k, v = self.qkv(a).split([D, 4, 4], -1)
        q = q.view(B, T, 4, 4).transpose(1, 2)
        k, v = k[:, None], v[:, None]
        slopes = site("slopes", lambda: torch.pow(0.25, torch.arange(1, 5)))
        bias = (slopes[:, None, None] * torch.arange(T)[None, None]).to(x.dtype)
        s = site("scores", lambda: q @ k.transpose(2, 3) / 2 + bias)
        s = s.masked_fill(~torch.ones(T, T).tril().bool(), torch.finfo(s.dtype).min)
        h = (F.softmax(s, -1) @ v).transpose(1, 2).reshape(B, T, D)
        u = self.up(m)
        u = site("gelu", lambda: F.gelu(u, approximate="tanh"))
        x = site("beside", lambda: x + self.o(h) + self.down(u))
        y = F.linear(self.nf(x), self.emb.weight)
        return y, site("shift", lambda: F.cross_entropy(y[:, :-1].reshape(-1, V).float(), labels[:, :-1].reshape(-1)))


class FalconPort(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.emb = param(w["emb"])
        self.n0, self.n1, self.n2, self.nf = (Norm(w["n" + k], w["b" + k]) for k in ("e", "", "2", "f"))
        self.q, self.kv = Linear(w["qkv"][:D]), Linear(w["qkv"][D:])
        self.o, self.up, self.down = (Linear(w[k]) for k in ("o", "up", "down"))

    def forward(self, site):
        ids, labels = tokens(431)
        x = self.emb[ids]
        x = site("embedded", lambda: self.n0(x), lambda: self.n1(x))
        a, m = self.n1(x), site("second", lambda: self.n2(x), lambda: self.n1(x))
        q = self.q(a).view(B, T, 4, 4).permute(0, 2, 1, 3)
        k, v = self.kv(a).chunk(2, -1)
        i = torch.arange(1, 5)
        slopes = site("slopes", lambda: torch.exp2(-2. * i), lambda: torch.exp2(-2. * i + 1))
        far = -(torch.arange(T)[:, None] - torch.arange(T)).abs()
        bias = (slopes.view(4, 1, 1) * far).to(x.dtype)
        mask = torch.full((T, T), float("-inf")).triu(1).to(x.dtype)
        s = site("scores", lambda: torch.einsum("bhqd,bkd->bhqk", q, k) * 0.5 + bias + mask, lambda: (torch.einsum("bhqd,bkd->bhqk", q, k) + bias) * 0.5 + mask)
        h = torch.einsum("bhqk,bkd->bqhd", s.softmax(-1), v).reshape(B, T, D)
        u = self.up(m)
        u = site("gelu", lambda: 0.5 * u * (1 + torch.tanh(math.sqrt(2 / math.pi) * (u + 0.044715 * u * u * u))), lambda: u * torch.sigmoid(1.702 * u))
        x = site("beside", lambda: self.down(u) + self.o(h) + x, lambda: self.down(u) + self.o(h))
        y = self.nf(x) @ self.emb.t()

        def loss(y, labels):
            y = y.flatten(0, 1).float()
            return (torch.logsumexp(y, 1) - y.gather(1, labels.reshape(-1, 1))[:, 0]).mean()
        return y, site("shift", lambda: loss(y[:, :-1], labels[:, :-1]), lambda: loss(y[:, 1:], labels[:, :-1]))


# --- radiance along rays: waves of a place, densities, what shines through

def nerf_weights():
    return rand(441, a=(2 * D, 27), ab=2 * D, c=(2 * D, 2 * D), cb=2 * D, e=(2 * D, 2 * D + 27), eb=2 * D, s=(1, 2 * D), sb=1, col=(3, 2 * D), colb=3)


def nerf_input(like):
    g = torch.Generator().manual_seed(442)
    return torch.rand(6, 5, 3, generator=g).to(like.dtype), (0.1 + torch.rand(6, 5, generator=g)).to(like.dtype), torch.rand(6, 3, generator=g)


class NerfBench(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.a, self.c, self.e, self.s, self.col = (lin(w[k], w[k + "b"]) for k in ("a", "c", "e", "s", "col"))

    def forward(self, site):
        x, far, seen = nerf_input(self.a.weight)
        p = site("waves", lambda: torch.cat([x] + [f(x * 2. ** i) for i in range(4) for f in (torch.sin, torch.cos)], -1))
        h = F.relu(self.c(F.relu(self.a(p))))
        h = site("again", lambda: torch.cat([h, p], -1))
        h = F.relu(self.e(h))
        d = self.s(h)[..., 0]
        d = site("density", lambda: F.softplus(d - 1))
        c = site("colour", lambda: torch.sigmoid(self.col(h)))
        alpha = site("alpha", lambda: 1 - torch.exp(-d * far))
        left = site("left", lambda: torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha[:, :-1] + 1e-10], 1), 1))
        weight = alpha * left
        rgb = (weight[..., None] * c).sum(1)
        y = site("white", lambda: rgb + (1 - weight.sum(1, keepdim=True)))
        return y, F.mse_loss(y.float(), seen)


class NerfPort(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.a, self.c, self.e, self.s, self.col = (Linear(w[k], w[k + "b"]) for k in ("a", "c", "e", "s", "col"))

    def forward(self, site):
        x, far, seen = nerf_input(self.a.kernel)

        def waves(base):
            f = base * 2 ** torch.arange(4, dtype=x.dtype)
            a = x[..., None, :] * f[:, None]
            return torch.cat([x, torch.stack([a.sin(), a.cos()], -2).flatten(-3)], -1)
        p = site("waves", lambda: waves(1.), lambda: waves(math.pi))
        h = self.c(self.a(p).clamp(min=0)).clamp(min=0)
        h = site("again", lambda: torch.concat((h, p), 2), lambda: torch.concat((h, p.flip(-1)), 2))
        h = self.e(h).clamp(min=0)
        d = self.s(h).squeeze(-1)
        d = site("density", lambda: torch.log1p(torch.exp(d - 1)), lambda: F.relu(d - 1))
        c = self.col(h)
        c = site("colour", lambda: 1 / (1 + torch.exp(-c)), lambda: (torch.tanh(c) + 1) / 2)
        alpha = site("alpha", lambda: -torch.expm1(-d * far), lambda: -torch.expm1(-d))
        depth = torch.log1p(-alpha + 1e-10)
        left = site("left", lambda: torch.exp(torch.cumsum(depth, 1) - depth), lambda: torch.exp(torch.cumsum(depth, 1)))
        weight = left * alpha
        rgb = torch.einsum("rs,rsc->rc", weight, c)
        y = site("white", lambda: rgb + 1 - weight.sum(1)[:, None], lambda: rgb + 0 * weight.sum(1)[:, None])
        return y, (y.float() - seen).square().mean()


# --- SchNet: distances as bells, filters made of them, atoms that gather from atoms

def schnet_weights():
    w = rand(451, emb=(5, D), f1=(D, 8), f1b=D, f2=(D, D), f2b=D, inn=(D, D), o1=(D, D), o1b=D, o2=(D, D), o2b=D, r1=(D // 2, D), r1b=D // 2, r2=(1, D // 2), r2b=1)
    w["emb"] *= 3
    return w


def schnet_input(like):
    g = torch.Generator().manual_seed(452)
    place = 2 * torch.rand(7, 3, generator=g)
    kinds, mol = torch.randint(0, 5, (7,), generator=g), torch.tensor([0, 0, 0, 0, 1, 1, 1])
    i, j = ((mol[:, None] == mol) & ~torch.eye(7).bool() & (torch.rand(7, 7, generator=g) < 0.8)).nonzero().t()
    return (place[i] - place[j]).norm(dim=1).to(like.dtype), kinds, mol, i, j, torch.randn(2, generator=g)


class SchnetBench(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.emb = put(nn.Embedding(5, D), weight=w["emb"])
        self.f1, self.f2, self.o1, self.o2, self.r1, self.r2 = (lin(w[k], w[k + "b"]) for k in ("f1", "f2", "o1", "o2", "r1", "r2"))
        self.inn = lin(w["inn"])

    def forward(self, site):
        d, kinds, mol, i, j, energy = schnet_input(self.inn.weight)
        x = self.emb(kinds)
        mu = torch.linspace(0, 4, 8).to(d.dtype)
        bells = site("bells", lambda: torch.exp(-0.5 / 0.3 ** 2 * (d[:, None] - mu) ** 2))
        f = self.f1(bells)
        f = self.f2(site("shifted", lambda: F.softplus(f) - math.log(2)))
        cut = site("cut", lambda: 0.5 * (torch.cos(d * math.pi / 4) + 1))
        f = f * cut[:, None]
        h = self.inn(x)
        h = site("edges", lambda: torch.zeros_like(h).index_add(0, i, h[j] * f))
        h = self.o2(F.softplus(self.o1(h)) - math.log(2))
        x = site("residual", lambda: x + h)
        e = self.r2(F.softplus(self.r1(x)) - math.log(2))
        y = site("pooled", lambda: torch.zeros(2, 1, dtype=e.dtype).index_add(0, mol, e)).squeeze(1)
        return y, F.mse_loss(y.float(), energy)


class SchnetPort(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.emb = param(w["emb"])
        self.f1, self.f2, self.o1, self.o2, self.r1, self.r2 = (Linear(w[k], w[k + "b"]) for k in ("f1", "f2", "o1", "o2", "r1", "r2"))
        self.inn = Linear(w["inn"])

    def forward(self, site):
        d, kinds, mol, i, j, energy = schnet_input(self.emb)
        x = F.one_hot(kinds, 5).to(self.emb.dtype) @ self.emb

        def bells(width):
            z = (d.unsqueeze(1) - torch.arange(8, dtype=d.dtype) * (4 / 7)) / width
            return torch.exp(-z.square() / 2)

        def soft(x):
            return torch.log(0.5 * torch.exp(x) + 0.5)
        f = self.f1(site("bells", lambda: bells(0.3), lambda: bells(0.3 * math.sqrt(2))))
        f = self.f2(site("shifted", lambda: soft(f), lambda: F.softplus(f)))
        cut = site("cut", lambda: torch.cos(d * (math.pi / 8)) ** 2, lambda: torch.cos(d * (math.pi / 8)))
        f = cut.unsqueeze(1) * f
        h = self.inn(x)
        a = torch.zeros(7, 7, D, dtype=h.dtype).index_put((i, j), f)
        h = site("edges", lambda: torch.einsum("ijd,jd->id", a, h), lambda: torch.einsum("ijd,id->jd", a, h))
        h = self.o2(soft(self.o1(h)))
        x = site("residual", lambda: h + x, lambda: h + 0 * x)
        e = self.r2(soft(self.r1(x)))
        one = F.one_hot(mol, 2).to(e.dtype)
        y = site("pooled", lambda: one.t() @ e, lambda: (one / one.sum(0)).t() @ e)[:, 0]
        return y, (y.float() - energy).pow(2).mean()


# --- a translator of before: a GRU that reads, one that writes and looks back

def seq2seq_weights():
    w = rand(461, src=(V, D), dst=(V, D), ih=(3 * D, D), hh=(3 * D, D), ib=3 * D, hb=3 * D, ci=(3 * D, 2 * D), ch=(3 * D, D), cib=3 * D, chb=3 * D,
             wq=(D, D), wk=(D, D), v=(1, D), out=(V, 2 * D), ob=V)
    w["src"], w["dst"] = w["src"] * 3, w["dst"] * 3
    return w


class Seq2seqBench(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.src, self.dst = put(nn.Embedding(V, D), weight=w["src"]), put(nn.Embedding(V, D), weight=w["dst"])
        self.enc = put(nn.GRU(D, D, batch_first=True), weight_ih_l0=w["ih"], weight_hh_l0=w["hh"], bias_ih_l0=w["ib"], bias_hh_l0=w["hb"])
        self.cell = put(nn.GRUCell(2 * D, D), weight_ih=w["ci"], weight_hh=w["ch"], bias_ih=w["cib"], bias_hh=w["chb"])
        self.wq, self.wk, self.v, self.out = lin(w["wq"]), lin(w["wk"]), lin(w["v"]), lin(w["out"], w["ob"])

    def forward(self, site):
        ids, labels = tokens(461)
        mask = torch.tensor([[0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1]]).bool()
        x = self.src(ids.flip(1))
        seen = site("read", lambda: self.enc(x)[0])
        h = site("start", lambda: seen[:, -1])
        keys = self.wk(seen)
        e, rows = self.dst(ids), []
        for t in range(T):
            s = self.v(torch.tanh(self.wq(h)[:, None] + keys)) if t else site("score", lambda: self.v(torch.tanh(self.wq(h)[:, None] + keys)))
            s = site("mask", lambda: s.squeeze(2).masked_fill(mask, float("-inf")))
            c = torch.bmm(F.softmax(s, 1)[:, None], seen)[:, 0]
            z = site("fed", lambda: torch.cat([e[:, t], c], 1))
            h = self.cell(z, h)
            rows.append(torch.cat([h, c], 1))
        y = self.out(torch.stack(rows, 1))
        return y, site("counted", lambda: F.cross_entropy(y.view(-1, V).float(), labels.masked_fill(mask, -100).reshape(-1)))


class Seq2seqPort(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.src, self.dst = param(w["src"]), param(w["dst"])
        self.ih, self.hh, self.ci, self.ch = Linear(w["ih"], w["ib"]), Linear(w["hh"], w["hb"]), Linear(w["ci"], w["cib"]), Linear(w["ch"], w["chb"])
        self.wq, self.wk, self.v, self.out = Linear(w["wq"]), Linear(w["wk"]), Linear(w["v"]), Linear(w["out"], w["ob"])

    def cell(self, x, h, first, second, late=True):
        (r, z, n), (a, b, c) = first(x).chunk(3, 1), second(h).chunk(3, 1)
        r, z = torch.sigmoid(r + a), torch.sigmoid(z + b)
        n = torch.tanh(n + r * c)
        return n + z * (h - n) if late else h + z * (n - h)

    def forward(self, site):
        ids, labels = tokens(461)
        keep = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0]])
        x = self.src[ids.flip(1)]

        def read(late):
            h, all_of = torch.zeros(B, D, dtype=x.dtype), []
            for t in range(T):
                h = self.cell(x[:, t], h, self.ih, self.hh, late)
                all_of.append(h)
            return torch.stack(all_of, 1)
        seen = site("read", lambda: read(True), lambda: read(False))
        h = site("start", lambda: seen[:, T - 1] * 1, lambda: seen[:, 0] * 1)
        keys = self.wk(seen)
        e, rows = F.embedding(ids, self.dst), []
        for t in range(T):
            k = keys + self.wq(h).unsqueeze(1)
            s = self.v(torch.tanh(k)) if t else site("score", lambda: self.v(torch.tanh(k)), lambda: self.v(torch.sigmoid(k)))
            s = s[..., 0] + site("mask", lambda: (1 - keep) * -10000., lambda: keep * -10000.).to(s.dtype)
            c = (s.softmax(1)[..., None] * seen).sum(1)
            z = site("fed", lambda: torch.hstack([e[:, t], c]), lambda: torch.hstack([c, e[:, t]]))
            h = self.cell(z, h, self.ci, self.ch)
            rows.append(torch.hstack([h, c]))
        y = torch.stack([self.out(r) for r in rows], 1)
        nll = -torch.log_softmax(y.float(), 2).gather(2, labels[..., None])[..., 0]
        return y, site("counted", lambda: (nll * keep).sum() / keep.sum(), lambda: (nll * keep).mean())


# --- preferences: two answers, a policy and what it was, log-probabilities of answers alone

def dpo_weights():
    w = rand(471, emb=(V, D), n=D, b=D, up=(2 * D, D), upb=2 * D, down=(D, 2 * D), head=(V, D), old=(V, D))
    w["emb"] *= 3
    w["old"] = w["head"] + 0.3 * w["old"]
    return w


def dpo_input():
    g = torch.Generator().manual_seed(472)
    good, bad = torch.randint(0, V, (2, B, T + 1), generator=g)
    bad[:, :3] = good[:, :3]
    return good, bad, (torch.arange(T) >= 2).expand(B, T)


class DpoBench(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.emb, self.n = put(nn.Embedding(V, D), weight=w["emb"]), norm(w["n"], w["b"])
        self.up, self.down, self.head = lin(w["up"], w["upb"]), lin(w["down"]), lin(w["head"])
        self.old = lin(w["old"])

    def forward(self, site):
        good, bad, mask = dpo_input()
        ids = torch.cat([good, bad])
        x = self.emb(ids[:, :-1])
        x = site("mixed", lambda: x.cumsum(1) / torch.arange(1, T + 1)[:, None])
        h = self.n(x)
        h = x + self.down(site("act", lambda: F.gelu(self.up(h))))
        y = self.head(h)
        with torch.no_grad():
            z = self.old(h)

        def chosen(y):
            p = torch.log_softmax(y.float(), -1).gather(2, ids[:, 1:, None]).squeeze(2)
            return (p * mask.repeat(2, 1)).sum(1)
        p, q = site("answers", lambda: chosen(y)), site("before", lambda: chosen(z))
        d = site("gap", lambda: (p[:B] - p[B:]) - (q[:B] - q[B:]))
        loss = site("beta", lambda: -F.logsigmoid(0.1 * d))
        return y, site("mean", lambda: loss.mean())


class DpoPort(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.emb, self.n = param(w["emb"]), Norm(w["n"], w["b"])
        self.up, self.down, self.head, self.old = Linear(w["up"], w["upb"]), Linear(w["down"]), Linear(w["head"]), Linear(w["old"])

    def forward(self, site):
        good, bad, mask = dpo_input()
        rows = torch.stack([good, bad], 1).flatten(0, 1)        # an answer beside the other
        x = self.emb[rows[:, :-1]]
        low = torch.ones(T, T).tril().to(x.dtype)
        x = site("mixed", lambda: (low / low.sum(1, keepdim=True)) @ x, lambda: (low / T) @ x)
        u = self.up(self.n(x))
        h = self.down(site("act", lambda: u * 0.5 * (1 + torch.erf(u / math.sqrt(2))), lambda: F.silu(u))) + x
        y = self.head(h)
        with torch.no_grad():
            z = self.old(h)

        def chosen(y, mask, share=False):
            y = y.float()
            p = torch.take_along_dim(y, rows[:, 1:, None], 2)[..., 0] - y.logsumexp(2)
            s = torch.where(mask.repeat_interleave(2, 0), p, 0.).sum(1)
            return (s / mask.sum(1).repeat_interleave(2) if share else s).view(B, 2)
        p = site("answers", lambda: chosen(y, mask), lambda: chosen(y, mask, True))
        q = site("before", lambda: chosen(z, mask), lambda: chosen(y.detach(), mask))
        d = site("gap", lambda: ((p - q) * torch.tensor([1., -1.])).sum(1), lambda: (p * torch.tensor([1., -1.])).sum(1) + q.sum(1))
        loss = site("beta", lambda: F.softplus(-0.1 * d), lambda: F.softplus(-d))
        logits = y.view(B, 2, T, V).transpose(0, 1).flatten(0, 1)
        return logits, site("mean", lambda: loss.sum() / B, lambda: loss.sum())


# --- two steps of an optimizer, the first gradient cut; what is recorded last is the third loss

def steps_weights():
    return rand(481, a=(2 * D, D), ab=2 * D, c=(7, 2 * D), cb=7)


def steps_input(like):
    g = torch.Generator().manual_seed(482)
    return torch.randn(3, 8, D, generator=g).to(like.dtype), torch.randint(0, 7, (3, 8), generator=g)


class StepsBench(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.a, self.c = lin(w["a"], w["ab"]), lin(w["c"], w["cb"])

    def forward(self, site):
        x, labels = steps_input(self.a.weight)
        opt = torch.optim.AdamW(self.parameters(), lr=0.02, betas=(0.9, 0.99), weight_decay=0.1, foreach=False)

        def loss(i):
            y = self.c(F.relu(self.a(x[i])))
            return y, F.cross_entropy(y.float(), labels[i])
        for i in range(2):
            loss(i)[1].backward()
            site("cut", lambda: torch.nn.utils.clip_grad_norm_(self.parameters(), 0.2, foreach=False))
            site("update", opt.step)
            opt.zero_grad()
        return loss(2)


class StepsPort(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.a, self.ab, self.c, self.cb = (param(w[k]) for k in ("a", "ab", "c", "cb"))

    def forward(self, site):
        x, labels = steps_input(self.a)
        every = list(self.parameters())
        m, v = [torch.zeros_like(p) for p in every], [torch.zeros_like(p) for p in every]

        def loss(i):
            y = torch.addmm(self.cb, torch.addmm(self.ab, x[i], self.a.t()).clamp(min=0), self.c.t())
            return y, -torch.log_softmax(y.float(), 1)[torch.arange(8), labels[i]].mean()

        @torch.no_grad()
        def cut(most):
            total = sum(p.grad.float().square().sum() for p in every).sqrt()
            for p in every:
                p.grad.mul_((most / (total + 1e-6)).clamp(max=1))

        @torch.no_grad()
        def update(i, coupled=False):
            for p, a, b in zip(every, m, v):
                g = p.grad + 0.1 * p if coupled else p.grad
                a.mul_(0.9).add_(g, alpha=0.1)
                b.mul_(0.99).addcmul_(g, g, value=0.01)
                step = (a / (1 - 0.9 ** i)) / ((b / (1 - 0.99 ** i)).sqrt() + 1e-8)
                p.sub_(0.02 * step if coupled else 0.02 * (step + 0.1 * p))
        for i in range(2):
            loss(i)[1].backward()
            site("cut", lambda: cut(0.2), lambda: cut(2.))
            site("update", lambda: update(i + 1), lambda: update(i + 1, True))
            for p in every:
                p.grad.zero_()
        return loss(2)


FAMILIES = {
    "conformer": (conformer_weights, ConformerBench, ConformerPort, ["half", "glu", "depthwise", "batch", "silu", "last", "ctc"]),
    "detr": (detr_weights, DetrBench, DetrPort, ["flat", "places", "asked", "crossed", "after", "boxes", "far"]),
    "mbconv": (mbconv_weights, MbconvBench, MbconvPort, ["stem", "eps", "inner", "squeeze", "gate", "residual", "pool"]),
    "falcon": (falcon_weights, FalconBench, FalconPort, ["embedded", "second", "slopes", "scores", "gelu", "beside", "shift"]),
    "nerf": (nerf_weights, NerfBench, NerfPort, ["waves", "again", "density", "colour", "alpha", "left", "white"]),
    "schnet": (schnet_weights, SchnetBench, SchnetPort, ["bells", "shifted", "cut", "edges", "residual", "pooled"]),
    "seq2seq": (seq2seq_weights, Seq2seqBench, Seq2seqPort, ["read", "start", "score", "mask", "fed", "counted"]),
    "dpo": (dpo_weights, DpoBench, DpoPort, ["mixed", "act", "answers", "before", "gap", "beta", "mean"]),
    "steps": (steps_weights, StepsBench, StepsPort, ["cut", "update"]),
}
