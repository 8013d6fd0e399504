"""LLaMA, with experts or without, LoRA or not: as Hugging Face writes it, and as Meta's, GShard's and other programs do."""
import math

import torch
import torch.nn.functional as F
from torch import nn

from attend import attend
from parts import given, own
from rows import heads_of

LLAMA_BUGS = ["rope", "theta", "scale", "diagonal", "eps", "silu", "repeat", "lora", "shift"]
MOE_BUGS = ["renorm", "order", "drop", "twice", "eps", "silu"]


def llama(c, experts=0):
    c.d, c.heads, c.t, c.n = c.r.choice([16, 32]), 4, c.r.choice([6, 8]), c.r.choice([2, 3])
    c.kv, c.vocab, c.depth, c.experts = c.r.choice([2, 4]), c.r.randrange(30, 60), 2, experts
    if c.has("repeat"):
        c.kv = 2
    c.each = c.d // c.heads
    c.lora = not experts and (c.r.random() < 0.5 or c.has("lora"))
    d, f = c.d, 2 * c.d
    c.w = {"embed": c.rand("embed", c.vocab, d), "head": c.rand("head", c.vocab, d, scale=1 / math.sqrt(d)), "nf": c.rand("nf", d, scale=0.1, around=1)}
    for i in range(c.depth):
        for n, rows in (("q", d), ("k", c.kv * c.each), ("v", c.kv * c.each), ("o", d)):
            c.w[f"{i}{n}"] = c.rand(f"{i}{n}", rows, d, scale=1.2 / math.sqrt(d))
        c.w[f"{i}la"], c.w[f"{i}lb"] = c.rand(f"{i}la", 4, d, scale=1 / math.sqrt(d)), c.rand(f"{i}lb", d, 4, scale=0.3)
        for n, shape in (("gate", (f, d)), ("up", (f, d)), ("down", (d, f))):
            c.w[f"{i}{n}"] = c.rand(f"{i}{n}", *([experts] if experts else []), *shape, scale=1 / math.sqrt(shape[-1]))
        c.w[f"{i}router"] = c.rand(f"{i}router", max(experts, 1), d, scale=1.5 / math.sqrt(d))
        for n in ("n1", "n2"):
            c.w[f"{i}{n}"] = c.rand(f"{i}{n}", d, scale=0.1, around=1)
    c.ids, c.labels = c.ints("ids", c.vocab, c.n, c.t), c.ints("labels", c.vocab, c.n, c.t)
    return Llama, PortedLlama


def moe(c):
    return llama(c, c.r.choice([4, 6]))


class RMSNorm(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = own(weight)

    def forward(self, x):
        dtype = x.dtype
        x = x.float()
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)
        return self.weight * x.to(dtype)


def rotate_half(x):
    a, b = x[..., :x.shape[-1] // 2], x[..., x.shape[-1] // 2:]
    return torch.cat((-b, a), dim=-1)


def angles(c, theta=10000.0):
    return torch.outer(torch.arange(c.t).float(), 1.0 / theta ** (torch.arange(0, c.each, 2).float() / c.each))


class LoRA(nn.Module):
    def __init__(self, c, i):
        super().__init__()
        self.base, self.a, self.b = (given(nn.Linear(w.shape[1], w.shape[0], bias=False), w) for w in (c.w[f"{i}q"], c.w[f"{i}la"], c.w[f"{i}lb"]))

    def forward(self, x):
        return self.base(x) + self.b(self.a(x)) * 2.0


class MLP(nn.Module):
    def __init__(self, gate, up, down):
        super().__init__()
        self.gate_proj, self.up_proj, self.down_proj = (given(nn.Linear(w.shape[1], w.shape[0], bias=False), w) for w in (gate, up, down))
        self.act_fn = nn.SiLU()

    def forward(self, x):
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


class Experts(nn.Module):
    """As Mixtral has it: a loop over the experts, each with the tokens that chose it."""
    def __init__(self, c, i):
        super().__init__()
        self.gate = given(nn.Linear(c.d, c.experts, bias=False), c.w[f"{i}router"])
        self.experts = nn.ModuleList([MLP(*(c.w[f"{i}{n}"][e] for n in ("gate", "up", "down"))) for e in range(c.experts)])

    def forward(self, x):
        n, t, d = x.shape
        x = x.view(-1, d)
        weights, chosen = torch.topk(F.softmax(self.gate(x).float(), dim=1), 2, dim=-1)
        weights = (weights / weights.sum(dim=-1, keepdim=True)).to(x.dtype)
        out = torch.zeros_like(x)
        mask = F.one_hot(chosen, num_classes=len(self.experts)).permute(2, 1, 0)
        for e, expert in enumerate(self.experts):
            idx, top = torch.where(mask[e])
            out.index_add_(0, top, expert(x[top]) * weights[top, idx, None])
        return out.view(n, t, d)


class Layer(nn.Module):
    def __init__(self, c, i):
        super().__init__()
        self.c = c
        linear = [given(nn.Linear(c.d, w.shape[0], bias=False), w) for w in (c.w[f"{i}{n}"] for n in "qkvo")]
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = linear
        if c.lora:
            self.q_proj = LoRA(c, i)
        self.input_layernorm, self.post_attention_layernorm = RMSNorm(c.w[f"{i}n1"]), RMSNorm(c.w[f"{i}n2"])
        self.mlp = Experts(c, i) if c.experts else MLP(*(c.w[f"{i}{n}"] for n in ("gate", "up", "down")))

    def attention(self, x, mask, cos, sin):
        c = self.c
        q, k, v = (heads_of(f(x), h) for f, h in ((self.q_proj, c.heads), (self.k_proj, c.kv), (self.v_proj, c.kv)))
        q, k = (s * cos + rotate_half(s) * sin for s in (q, k))
        if c.kv < c.heads:
            k, v = (s[:, :, None].expand(c.n, c.kv, c.heads // c.kv, c.t, c.each).reshape(c.n, c.heads, c.t, c.each) for s in (k, v))
        s = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(c.each) + mask
        p = F.softmax(s, dim=-1, dtype=torch.float32).to(q.dtype)
        return self.o_proj(torch.matmul(p, v).transpose(1, 2).contiguous().reshape(c.n, c.t, c.d))

    def forward(self, x, mask, cos, sin):
        x = x + self.attention(self.input_layernorm(x), mask, cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))


class Llama(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.embed_tokens = given(nn.Embedding(c.vocab, c.d), c.w["embed"])
        self.layers = nn.ModuleList([Layer(c, i) for i in range(c.depth)])
        self.norm, self.lm_head = RMSNorm(c.w["nf"]), given(nn.Linear(c.d, c.vocab, bias=False), c.w["head"])

    def step(self):
        c = self.c
        x = self.embed_tokens(c.ids)
        emb = torch.cat([angles(c)] * 2, dim=-1)
        mask = torch.full((c.t, c.t), torch.finfo(x.dtype).min, dtype=x.dtype).triu(1)
        for layer in self.layers:
            x = layer(x, mask, emb.cos().to(x.dtype), emb.sin().to(x.dtype))
        logits = self.lm_head(self.norm(x)).float()
        F.cross_entropy(logits[:, :-1].reshape(-1, c.vocab), c.labels[:, 1:].reshape(-1)).backward()


class PortedLlama(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c, self.p = c, nn.ParameterDict()
        self.rope = c.pick("rope", "half", "pairs", "complex")
        for k, w in c.w.items():
            if k[1:] in ("q", "k", "lb") and self.rope != "half" and not c.has("rope"):    # neighbours turn together
                w = w.view(-1, 2, c.each // 2, w.shape[-1]).transpose(1, 2).reshape(w.shape)
            if k[1:] in ("gate", "up", "down"):
                w = w.transpose(-1, -2).contiguous()
            self.p[k] = own(w)
        for i in range(c.depth):
            if c.pick("mlp", "packed", "apart") == "packed":
                self.p[f"{i}h"] = own(torch.cat([self.p.pop(f"{i}gate").data, self.p.pop(f"{i}up").data], -1))

    def norm(self, x, n):
        c, w = self.c, self.p[n]
        with c.at("eps") if n == "0n2" else c.at("none"):
            way = c.pick("rms", "written", "norm", "float")
            if c.has("eps") and n == "0n2":    # outside the root
                return x / (x.square().mean(-1, keepdim=True).sqrt() + 0.05) * w
            if way == "norm":
                return x / (x.norm(dim=-1, keepdim=True) * c.d ** -0.5 + 1e-12) * w
            if way == "float":
                h = x.float()
                return (h * torch.rsqrt(h.square().mean(-1, keepdim=True) + 1e-5)).type_as(x) * w
            return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * w

    def turned(self, x):    # n, t, heads, each
        c = self.c
        with c.at("rope", "theta"):
            a = angles(c, 1000.0 if c.has("theta") else 10000.0)
            way = self.rope
            if c.has("rope"):    # the layout of the other program
                way = "pairs" if way == "half" or way == "complex" else "pairs"
            if way == "half":
                cos, sin = a.cos().to(x.dtype)[:, None], a.sin().to(x.dtype)[:, None]
                p, q = x.chunk(2, -1)
                return torch.cat([p * cos - q * sin, q * cos + p * sin], -1)
            if way == "complex":
                z = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2).contiguous())
                return torch.view_as_real(z * torch.polar(torch.ones_like(a), a)[:, None]).flatten(3).type_as(x)
            cos, sin = a.cos().to(x.dtype)[:, None], a.sin().to(x.dtype)[:, None]
            p, q = x[..., ::2], x[..., 1::2]
            return torch.stack([p * cos - q * sin, p * sin + q * cos], -1).flatten(-2)

    def query(self, x, i):
        c, p = self.c, self.p
        with c.at("lora") if i == 0 else c.at("none"):
            if not c.lora:
                return F.linear(x, p[f"{i}q"])
            s = 0.5 if c.has("lora") and i == 0 else 2.0
            if c.pick("lora", "merged", "fused") == "merged":
                return F.linear(x, p[f"{i}q"] + s * (p[f"{i}lb"] @ p[f"{i}la"]))
            y = F.linear(x, p[f"{i}q"]).view(-1, c.d)
            return torch.addmm(y, x.reshape(-1, c.d) @ p[f"{i}la"].t(), p[f"{i}lb"].t(), alpha=s).view(c.n, c.t, c.d)

    def attention(self, x, i, hidden):
        c, p = self.c, self.p
        q = self.query(x, i).view(c.n, c.t, c.heads, c.each)
        k, v = (F.linear(x, p[f"{i}{n}"]).view(c.n, c.t, c.kv, c.each) for n in "kv")
        q, k = self.turned(q), self.turned(k)
        with c.at("repeat"):
            if c.has("repeat"):
                k, v = (s.repeat(1, 1, c.heads // c.kv, 1) for s in (k, v))
            elif c.kv < c.heads:
                k, v = (torch.repeat_interleave(s, c.heads // c.kv, dim=2) for s in (k, v))
        y = attend(c, *(s.transpose(1, 2) for s in (q, k, v)), hidden)
        return F.linear(y.transpose(1, 2).reshape(c.n, c.t, c.d), p[f"{i}o"])

    def silu(self, g, i):
        c = self.c
        with c.at("silu") if i == 0 else c.at("none"):
            if c.has("silu") and i == 0:
                return g * torch.sigmoid(1.702 * g)
            return g * torch.sigmoid(g) if c.pick("silu", "f", "written") == "written" else F.silu(g)

    def mlp(self, x, i):
        c, p = self.c, self.p
        if c.pick("mlp") == "packed":
            g, u = (x @ p[f"{i}h"]).chunk(2, -1)
        else:
            g, u = x @ p[f"{i}gate"], x @ p[f"{i}up"]
        return (u * self.silu(g, i)) @ p[f"{i}down"]

    def routed(self, x, i):
        c = self.c
        x = x.reshape(-1, c.d)
        with c.at("renorm", "twice") if i == 0 else c.at("none"):
            logits = F.linear(x, self.p[f"{i}router"]).float()
            top, chosen = logits.topk(2, -1)
            if c.has("renorm") and i == 0:    # not of the chosen alone
                w = logits.softmax(-1).gather(1, chosen)
            else:
                w = top.softmax(-1)
            if c.has("twice") and i == 0:
                w = w.softmax(-1)
        w = w.to(x.dtype)
        with c.at("order", "drop") if i == 0 else c.at("none"):
            if c.has("order") and i == 0:
                w = w.flip(-1)
            if c.has("drop") and i == 0:    # what is beyond the capacity of an expert
                w = w * (chosen != chosen[0, 0]).to(w.dtype)
            return self.spread(x, chosen, w, i).view(c.n, c.t, c.d)

    def spread(self, x, chosen, w, i):
        c = self.c
        way = c.pick("experts", "dense", "sorted", "dispatch")
        if way == "dense":    # each expert on each token
            share = torch.zeros(x.shape[0], c.experts, dtype=w.dtype).scatter(1, chosen, w)
            return torch.einsum("end,ne->nd", self.mlp(x.expand(c.experts, -1, -1), i), share)
        if way == "sorted":
            order = chosen.flatten().argsort(stable=True)
            token, counts = order // 2, torch.bincount(chosen.flatten(), minlength=c.experts).tolist()
            y = []
            for e, part in enumerate(x.index_select(0, token).split(counts)):
                if counts[e]:
                    y.append(Sliced(self, e).mlp(part, i))
            y = torch.cat(y) * w.flatten()[order].unsqueeze(-1)
            return torch.zeros_like(x).index_add(0, token, y)
        # As GShard dispatches: one place of an expert for each token that chose it.
        hot = F.one_hot(chosen, c.experts)
        place = (hot.flatten(0, 1).cumsum(0).view_as(hot) - 1) * hot
        room = int(hot.sum((0, 1)).max())
        dispatch = (F.one_hot(place, room) * hot.unsqueeze(-1)).to(x.dtype)
        combine = torch.einsum("nk,nkec->nec", w, dispatch)
        y = self.mlp(torch.einsum("nec,nd->ecd", dispatch.sum(1), x), i)
        return torch.einsum("nec,ecd->nd", combine, y)

    def step(self):
        c, p = self.c, self.p
        if c.pick("embed", "index", "onehot") == "onehot":
            x = F.one_hot(c.ids, c.vocab).to(p["embed"].dtype) @ p["embed"]
        else:
            x = p["embed"][c.ids]
        hidden = torch.ones(c.t, c.t, dtype=torch.bool).triu(1)
        for i in range(c.depth):
            x = x + self.attention(self.norm(x, f"{i}n1"), i, hidden)
            h = self.norm(x, f"{i}n2")
            x = x + (self.routed(h, i) if c.experts else self.mlp(h, i))
        x = self.norm(x, "nf")
        with c.at("shift"):
            labels = c.labels[:, :-1] if c.has("shift") else c.labels[:, 1:]
            if c.pick("head", "late", "early") == "early":
                logits = F.linear(x[:, :-1], p["head"]).float()
            else:
                logits = F.linear(x, p["head"]).float()[:, :-1]
            if c.pick("loss", "sum", "logsoftmax") == "sum":
                loss = F.cross_entropy(logits.transpose(1, 2), labels, reduction="sum") / labels.numel()
            else:
                loss = F.nll_loss(F.log_softmax(logits, -1).reshape(-1, c.vocab), labels.reshape(-1))
        loss.backward()


class Sliced:
    """One expert of a layer."""
    def __init__(self, net, e):
        self.c, self.silu = net.c, net.silu
        self.p = {k: v[e] for k, v in net.p.items() if k[1:] in ("h", "gate", "up", "down")}

    mlp = PortedLlama.mlp
