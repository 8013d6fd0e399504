"""Networks of tokens, each as two programs: the bench as timm, Hugging Face and torch.nn write them, the device as
ports do (patches by products, rotary embeddings of neighbours, experts at once, cells by hand, sequences packed)."""
import math

import torch
import torch.nn.functional as F
from torch import nn

from attend import attend
from parts import given, own
from planes import cross_entropy


def norm(c, x, weight, bias, eps, wrong=False):
    """A layer norm as the device has it; wrong: with the bug, if it is one of these."""
    with c.at("eps", "ddof") if wrong else c.at("none"):
        if wrong and c.has("eps"):
            eps = 1e-2
        if c.pick("norm", "functional", "written", "square") == "functional" and not (wrong and c.has("ddof")):
            return F.layer_norm(x, x.shape[-1:], weight, bias, eps)
        m = x.mean(-1, keepdim=True)
        if c.pick("norm") == "written" or wrong and c.has("ddof"):
            v = x.var(-1, unbiased=wrong and c.has("ddof"), keepdim=True)
            return weight * (x - m) / torch.sqrt(v + eps) + bias
        d = x - m
        return d * torch.rsqrt((d * d).mean(-1, keepdim=True) + eps) * weight + bias


def gelu(c, x, wrong):
    with c.at("gelu") if wrong else c.at("none"):
        if wrong and c.has("gelu"):
            return F.gelu(x, approximate="tanh")
        if c.pick("gelu", "f", "erf") == "erf":
            return 0.5 * x * (1.0 + torch.erf(x / math.sqrt(2.0)))
        return F.gelu(x)


def heads_of(x, heads):
    return x.view(*x.shape[:2], heads, -1).transpose(1, 2)


class Encoder(nn.Module):
    """A layer of a transformer, as timm (norms first) and Hugging Face's BERT (norms last) write it."""
    def __init__(self, c, i, first):
        super().__init__()
        d = c.d
        self.first, self.heads = first, c.heads
        self.n1, self.n2 = (given(nn.LayerNorm(d, eps=c.eps), c.w[f"{i}g{n}"], c.w[f"{i}b{n}"]) for n in (1, 2))
        self.query, self.key, self.value, self.out = (given(nn.Linear(d, d), c.w[f"{i}{n}"], c.w[f"{i}{n}b"]) for n in "qkvo")
        self.fc1 = given(nn.Linear(d, 2 * d), c.w[f"{i}up"], c.w[f"{i}upb"])
        self.fc2 = given(nn.Linear(2 * d, d), c.w[f"{i}down"], c.w[f"{i}downb"])
        self.act = nn.GELU()

    def attention(self, x, mask):
        q, k, v = (heads_of(f(x), self.heads) for f in (self.query, self.key, self.value))
        s = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(q.shape[-1])
        p = nn.functional.softmax(s if mask is None else s + mask, dim=-1)
        return self.out(torch.matmul(p, v).permute(0, 2, 1, 3).contiguous().flatten(2))

    def forward(self, x, mask=None):
        if self.first:
            x = x + self.attention(self.n1(x), mask)
            return x + self.fc2(self.act(self.fc1(self.n2(x))))
        x = self.n1(self.attention(x, mask) + x)
        return self.n2(self.fc2(self.act(self.fc1(x))) + x)


def encoder_weights(c, depth):
    d = c.d
    c.w = {}
    for i in range(depth):
        for n in "qkvo":
            c.w[f"{i}{n}"], c.w[f"{i}{n}b"] = c.rand(f"{i}{n}", d, d, scale=1.2 / math.sqrt(d)), c.rand(f"{i}{n}b", d, scale=0.1)
        c.w[f"{i}up"], c.w[f"{i}upb"] = c.rand(f"{i}up", 2 * d, d, scale=1 / math.sqrt(d)), c.rand(f"{i}upb", 2 * d, scale=0.1)
        c.w[f"{i}down"], c.w[f"{i}downb"] = c.rand(f"{i}down", d, 2 * d, scale=0.7 / math.sqrt(d)), c.rand(f"{i}downb", d, scale=0.1)
        for n in (1, 2):
            c.w[f"{i}g{n}"], c.w[f"{i}b{n}"] = c.rand(f"{i}g{n}", d, scale=0.1, around=1), c.rand(f"{i}b{n}", d, scale=0.1)


class PortedEncoder(nn.Module):
    def __init__(self, c, i, first):
        super().__init__()
        self.c, self.i, self.first, self.p = c, i, first, nn.ParameterDict()
        for n in ("g1", "b1", "g2", "b2", "o", "ob", "upb", "downb"):
            self.p[n] = own(c.w[f"{i}{n}"])
        self.p["up"], self.p["down"] = own(c.w[f"{i}up"].t().contiguous()), own(c.w[f"{i}down"].t().contiguous())
        self.p["qkv"] = own(torch.cat([c.w[f"{i}{n}"] for n in "qkv"]))
        self.p["qkvb"] = own(torch.cat([c.w[f"{i}{n}b"] for n in "qkv"]))

    def attention(self, x, hidden):
        c, p = self.c, self.p
        n, t, d = x.shape
        if c.pick("qkv", "packed", "heads") == "packed":
            q, k, v = F.linear(x, p["qkv"], p["qkvb"]).view(n, t, 3, c.heads, -1).permute(2, 0, 3, 1, 4)
        else:
            w, b = p["qkv"].view(3, c.heads, -1, d), p["qkvb"].view(3, 1, c.heads, 1, -1)
            q, k, v = (torch.einsum("ntd,hed->nhte", x, w[j]) + b[j] for j in range(3))
        y = attend(c, q, k, v, hidden)
        if c.pick("join", "einsum", "linear") == "einsum":
            return torch.einsum("nhte,dhe->ntd", y, p["o"].view(d, c.heads, -1)) + p["ob"]
        return F.linear(y.transpose(1, 2).reshape(n, t, d), p["o"], p["ob"])

    def mlp(self, x):
        p = self.p
        return gelu(self.c, x @ p["up"] + p["upb"], self.i == 0) @ p["down"] + p["downb"]

    def forward(self, x, hidden=None):
        c, p = self.c, self.p
        if self.first:
            x = x + self.attention(norm(c, x, p["g1"], p["b1"], c.eps), hidden)
            return x + self.mlp(norm(c, x, p["g2"], p["b2"], c.eps, self.i == 0))
        x = norm(c, x + self.attention(x, hidden), p["g1"], p["b1"], c.eps, self.i == 0)
        return norm(c, x + self.mlp(x), p["g2"], p["b2"], c.eps)


# --- a vision transformer ----------------------------------------------------------------------------------

VIT_BUGS = ["eps", "ddof", "gelu", "scale", "patch", "position", "pool"]


def vit(c):
    c.heads, c.d, c.n = c.r.choice([2, 4]), c.r.choice([16, 32]), c.r.choice([2, 3])
    c.patch, c.grid, c.eps = c.r.choice([2, 4]), c.r.choice([2, 3]), 1e-6
    encoder_weights(c, 2)
    s = c.patch * c.grid
    c.proj, c.projb = c.rand("proj", c.d, 3, c.patch, c.patch, scale=0.5 / c.patch), c.rand("projb", c.d, scale=0.1)
    c.cls, c.pos = c.rand("cls", 1, 1, c.d, scale=0.3), c.rand("pos", 1, c.grid ** 2 + 1, c.d, scale=0.3)
    c.gn, c.bn, c.head, c.headb = c.rand("gn", c.d, scale=0.1, around=1), c.rand("bn", c.d, scale=0.1), c.rand("head", 7, c.d, scale=0.3), c.rand("headb", 7)
    c.x, c.y, c.by = c.rand("x", c.n, 3, s, s), c.ints("y", 7, c.n), c.r.choice(["token", "mean"])
    return ViT, PortedViT


class ViT(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.patch_embed = given(nn.Conv2d(3, c.d, c.patch, c.patch), c.proj, c.projb)
        self.cls_token, self.pos_embed = own(c.cls), own(c.pos)
        self.blocks = nn.ModuleList([Encoder(c, i, True) for i in range(2)])
        self.norm, self.head = given(nn.LayerNorm(c.d, eps=c.eps), c.gn, c.bn), given(nn.Linear(c.d, 7), c.head, c.headb)
        self.x = own(c.x).requires_grad_(False)

    def step(self):
        x = self.patch_embed(self.x).flatten(2).transpose(1, 2)
        x = torch.cat((self.cls_token.expand(x.shape[0], -1, -1), x), dim=1) + self.pos_embed
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        x = x[:, 0] if self.c.by == "token" else x[:, 1:].mean(dim=1)
        F.cross_entropy(self.head(x).float(), self.c.y).backward()


class PortedViT(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.kernel, self.kernel_bias, self.token, self.positions = own(c.proj.flatten(1).t().contiguous()), own(c.projb), own(c.cls), own(c.pos)
        self.layers = nn.ModuleList([PortedEncoder(c, i, True) for i in range(2)])
        self.gamma, self.beta, self.out, self.out_bias = own(c.gn), own(c.bn), own(c.head), own(c.headb)
        self.images = own(c.x).requires_grad_(False)

    def step(self):
        c = self.c
        n, p = c.n, c.patch
        with c.at("patch"):
            if c.pick("patches", "unfold", "reshape") == "unfold" and not c.has("patch"):
                x = F.unfold(self.images, p, stride=p).transpose(1, 2)
            else:
                order = (0, 2, 4, 3, 5, 1) if c.has("patch") else (0, 2, 4, 1, 3, 5)
                x = self.images.reshape(n, 3, c.grid, p, c.grid, p).permute(*order).reshape(n, c.grid ** 2, -1)
            x = torch.matmul(x, self.kernel) + self.kernel_bias
        pos = self.positions
        with c.at("position"):
            if c.has("position"):
                pos = pos.roll(1, 1)
            if c.pick("tokens", "late", "early") == "late":
                x = torch.cat([(self.token + pos[:, :1]).repeat(n, 1, 1), x + pos[:, 1:]], 1)
            else:
                x = torch.cat([self.token.repeat(n, 1, 1), x], 1).add_(pos)
        for layer in self.layers:
            x = layer(x)
        with c.at("pool"):
            if c.by == "token":
                x = x[:, -1] if c.has("pool") else x[:, 0]
                x = norm(c, x, self.gamma, self.beta, c.eps)
            else:
                x = norm(c, x, self.gamma, self.beta, c.eps)
                x = x.mean(1) if c.has("pool") else x[:, 1:].sum(1) / (x.shape[1] - 1)
        cross_entropy(c, (x @ self.out.t() + self.out_bias).float(), c.y).backward()


# --- BERT: samples filled up and masked, against sequences that are packed ---------------------------------

BERT_BUGS = ["eps", "ddof", "gelu", "scale", "nomask", "type", "positions", "count"]


def bert(c):
    c.heads, c.d, c.n, c.t, c.eps = c.r.choice([2, 4]), c.r.choice([16, 32]), 3, c.r.choice([8, 10]), 1e-12
    encoder_weights(c, 2)
    c.vocab = c.r.randrange(30, 60)
    c.word, c.posw, c.typew = c.rand("word", c.vocab, c.d, scale=0.3), c.rand("posw", c.t, c.d, scale=0.2), c.rand("typew", 2, c.d, scale=0.2)
    c.g0, c.b0 = c.rand("g0", c.d, scale=0.1, around=1), c.rand("b0", c.d, scale=0.1)
    c.dense, c.denseb = c.rand("dense", c.d, c.d, scale=1 / math.sqrt(c.d)), c.rand("denseb", c.d, scale=0.1)
    c.ids, c.types = c.ints("ids", c.vocab, c.n, c.t), c.ints("types", 2, c.n, c.t)
    c.lengths = [c.t, c.t - 3, c.t - 2]
    c.valid = torch.arange(c.t)[None] < torch.tensor(c.lengths)[:, None]
    labels = c.ints("labels", c.vocab, c.n, c.t)
    c.labels = labels.masked_fill(~(c.valid & (c.ints("which", 3, c.n, c.t) > 0)), -100)
    return Bert, PortedBert


class Bert(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.words, self.positions, self.types = (given(nn.Embedding(*w.shape), w) for w in (c.word, c.posw, c.typew))
        self.norm, self.dense = given(nn.LayerNorm(c.d, eps=c.eps), c.g0, c.b0), given(nn.Linear(c.d, c.d), c.dense, c.denseb)
        self.layer = nn.ModuleList([Encoder(c, i, False) for i in range(2)])

    def step(self):
        c = self.c
        x = self.words(c.ids) + self.types(c.types) + self.positions(torch.arange(c.t)[None])
        x = self.norm(x)
        mask = (1.0 - c.valid[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
        for layer in self.layer:
            x = layer(x, mask)
        logits = (torch.tanh(self.dense(x)) @ self.words.weight.t()).float()
        F.cross_entropy(logits.view(-1, c.vocab), c.labels.view(-1)).backward()


class PortedBert(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c, self.p = c, nn.ParameterDict()
        for n in ("word", "posw", "typew", "g0", "b0", "dense", "denseb"):
            self.p[n] = own(getattr(c, n))
        self.layers = nn.ModuleList([PortedEncoder(c, i, False) for i in range(2)])

    def embed(self, ids, table, how):
        if how == "index":
            return table[ids]
        if how == "onehot":
            return F.one_hot(ids, table.shape[0]).to(table.dtype) @ table
        return torch.index_select(table, 0, ids.reshape(-1)).view(*ids.shape, -1)

    def step(self):
        c, p = self.c, self.p
        packed = c.pick("batch", "packed", "padded") == "packed"
        where = torch.arange(c.t).expand(c.n, -1)
        ids, types, labels = c.ids, c.types, c.labels
        if packed:    # all sequences one behind the other: one sample, and who sees whom
            ids, types, labels, where = (v[c.valid][None] for v in (ids, types, labels, where))
            of = torch.arange(c.n)[:, None].expand(-1, c.t)[c.valid]
            hidden = (of[:, None] != of[None, :])[None, None]
        else:
            hidden = ~c.valid[:, None, None, :]
        with c.at("positions", "type"):
            if c.has("positions"):    # begun at 2, as RoBERTa's are
                where = (where + 2).clamp(max=c.t - 1)
            if c.has("type"):
                types = torch.zeros_like(types)
            x = self.embed(ids, p["word"], c.pick("word", "index", "onehot", "select")) + \
                (self.embed(where, p["posw"], "index") + self.embed(types, p["typew"], c.pick("type", "onehot", "index")))
        x = norm(c, x, p["g0"], p["b0"], c.eps)
        for layer in self.layers:
            x = layer(x, hidden)
        if c.pick("head", "all", "some") == "some":    # the labels' tokens alone
            seen = labels.reshape(-1) >= 0
            x, labels = x.reshape(-1, c.d)[seen], labels.reshape(-1)[seen]
        logits = F.linear(torch.tanh(F.linear(x, p["dense"], p["denseb"])), p["word"]).float()
        logits, labels = logits.reshape(-1, c.vocab), labels.reshape(-1)
        with c.at("count"):
            loss = F.cross_entropy(logits, labels, reduction="sum", ignore_index=-100)
            loss = loss / (labels.numel() if c.has("count") and c.pick("head") == "all" else c.n * c.t if c.has("count") else (labels >= 0).sum())
        loss.backward()
