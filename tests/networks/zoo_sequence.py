"""Networks that read sequences."""
import math

import torch
import torch.nn.functional as F
from torch import nn

from zoo import Net


class GptLayer(nn.Module):
    def __init__(self, d, heads, p, act):
        super().__init__()
        self.heads, self.act, self.drop = heads, act, p
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.o = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x, hide):
        b, s, d = x.shape
        q, k, v = (t.view(b, s, self.heads, d // self.heads).transpose(1, 2)
                   for t in self.qkv(self.n1(x)).split(d, dim=-1))
        a = torch.matmul(q, k.transpose(-1, -2)) * (1.0 / math.sqrt(d // self.heads))
        a = F.softmax(a.masked_fill(hide, float("-inf")), dim=-1)
        a = F.dropout(a, self.drop, self.training)
        x = x + self.o(torch.matmul(a, v).transpose(1, 2).contiguous().view(b, s, d))
        return x + F.dropout(self.down(self.act(self.up(self.n2(x)))), self.drop, self.training)


class Gpt(Net):
    can_recompute = True

    def __init__(self, r):
        super().__init__()
        heads = r.choice([2, 4])
        d, self.vocab = heads * r.choice([6, 8, 12]), r.choice([61, 97])
        self.n, self.s = r.choice([2, 3]), r.choice([9, 16, 21])
        act = r.choice([lambda x: F.gelu(x), lambda x: F.gelu(x, approximate="tanh"), F.relu])
        p = r.choice([0.0, 0.0, 0.1])
        self.word, self.place = nn.Embedding(self.vocab, d), nn.Embedding(32, d)
        self.layers = nn.ModuleList(GptLayer(d, heads, p, act) for _ in range(r.choice([2, 3, 4])))
        self.norm = nn.LayerNorm(d)
        for layer in self.layers:
            layer.act_name = "act"
        self.tied = r.random() < 0.7
        self.head = None if self.tied else nn.Linear(d, self.vocab, bias=False)

    def batch(self, r):
        return (torch.randint(self.vocab, (self.n, self.s + 1)),)

    def forward(self, ids):
        s = ids.shape[1] - 1
        x = self.word(ids[:, :-1]) + self.place(torch.arange(s))
        hide = torch.triu(torch.ones(s, s, dtype=torch.bool), 1)
        for layer in self.layers:
            x = self.segment(layer, x, hide)
        x = self.norm(x)
        y = F.linear(x, self.word.weight) if self.tied else self.head(x)
        return F.cross_entropy(y.reshape(-1, self.vocab), ids[:, 1:].reshape(-1))


class GruCell(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.x, self.h = nn.Linear(d, 3 * h), nn.Linear(h, 3 * h)

    def forward(self, x, h):
        r, z, n = self.x(x).chunk(3, -1)
        hr, hz, hn = self.h(h).chunk(3, -1)
        r, z = torch.sigmoid(r + hr), torch.sigmoid(z + hz)
        n = torch.tanh(n + r * hn)
        return (1 - z) * n + z * h


class Gru(Net):
    def __init__(self, r):
        super().__init__()
        self.vocab, self.classes = r.choice([40, 70]), r.choice([3, 6])
        d, h = r.choice([12, 20]), r.choice([16, 24, 32])
        self.n, self.s, self.hidden = r.choice([3, 5]), r.choice([5, 7, 9]), h
        self.embed = nn.Embedding(self.vocab, d)
        self.cells = nn.ModuleList(GruCell(d if i == 0 else h, h) for i in range(r.choice([1, 2])))
        self.head = nn.Linear(h, self.classes)
        self.pool = r.choice(["last", "mean", "max"])

    def batch(self, r):
        return (torch.randint(self.vocab, (self.n, self.s)),
                torch.randint(self.classes, (self.n,)))

    def forward(self, ids, y):
        xs = list(self.embed(ids).unbind(1))
        for cell in self.cells:
            h, out = torch.zeros(self.n, self.hidden, dtype=xs[0].dtype), []
            for x in xs:
                h = cell(x, h)
                out.append(h)
            xs = out
        x = torch.stack(xs, 1)
        x = xs[-1] if self.pool == "last" else x.mean(1) if self.pool == "mean" else x.max(1)[0]
        return F.cross_entropy(self.head(x), y)


class LstmCell(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.x, self.h = nn.Linear(d, 4 * h), nn.Linear(h, 4 * h, bias=False)

    def forward(self, x, h, c):
        i, f, g, o = (self.x(x) + self.h(h)).chunk(4, -1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c


class Lstm(Net):
    """A language model, both layers written out; tied weights."""

    def __init__(self, r):
        super().__init__()
        self.vocab, self.hidden = r.choice([50, 80]), r.choice([16, 24])
        self.n, self.s = r.choice([2, 4]), r.choice([4, 6, 8])
        self.embed = nn.Embedding(self.vocab, self.hidden)
        self.cells = nn.ModuleList(LstmCell(self.hidden, self.hidden)
                                   for _ in range(r.choice([1, 2])))
        self.p = r.choice([0.0, 0.2])
        self.bias = nn.Parameter(torch.zeros(self.vocab))

    def batch(self, r):
        return (torch.randint(self.vocab, (self.n, self.s + 1)),)

    def forward(self, ids):
        x = self.embed(ids[:, :-1])
        state = [(torch.zeros(self.n, self.hidden, dtype=x.dtype),) * 2 for _ in self.cells]
        out = []
        for t in range(self.s):
            h = x[:, t]
            for i, cell in enumerate(self.cells):
                state[i] = cell(h, *state[i])
                h = state[i][0]
            out.append(F.dropout(h, self.p, True))
        y = F.linear(torch.stack(out, 1), self.embed.weight, self.bias)
        return F.cross_entropy(y.transpose(1, 2), ids[:, 1:])


class BertLayer(nn.Module):
    def __init__(self, d, heads, p, act):
        super().__init__()
        self.attend = nn.MultiheadAttention(d, heads, dropout=0.0)
        self.up, self.down, self.act, self.p = nn.Linear(d, 2 * d), nn.Linear(2 * d, d), act, p
        self.n1, self.n2 = nn.LayerNorm(d, eps=1e-12), nn.LayerNorm(d, eps=1e-12)

    def forward(self, x, pad):
        y = self.attend(x, x, x, key_padding_mask=pad, need_weights=False)[0]
        x = self.n1(x + F.dropout(y, self.p, True))
        return self.n2(x + F.dropout(self.down(self.act(self.up(x))), self.p, True))


class Bert(Net):
    """Post-norm encoder with padding: masked words, and whether sentences belong together."""

    def __init__(self, r):
        super().__init__()
        heads = r.choice([2, 4])
        d, self.vocab = heads * r.choice([6, 8, 12]), r.choice([61, 90])
        self.n, self.s = r.choice([2, 3]), r.choice([10, 17])
        self.word, self.place, self.kind = (nn.Embedding(k, d) for k in (self.vocab, 24, 2))
        self.norm = nn.LayerNorm(d, eps=1e-12)
        p, act = r.choice([0.0, 0.1]), r.choice([nn.GELU(), nn.GELU("tanh")])
        self.layers = nn.ModuleList(BertLayer(d, heads, p, act) for _ in range(r.choice([2, 3])))
        self.turn, self.n2 = nn.Linear(d, d), nn.LayerNorm(d)
        self.bias, self.pool, self.next = nn.Parameter(torch.zeros(self.vocab)), \
            nn.Linear(d, d), nn.Linear(d, 2)
        self.look = nn.Linear(d, 1) if r.random() < 0.5 else None

    def batch(self, r):
        ids = torch.randint(1, self.vocab, (self.n, self.s))
        for i in range(self.n):
            ids[i, self.s - i * 3:] = 0
        label = torch.where(torch.rand(ids.shape) < 0.3, ids, torch.full_like(ids, -100))
        label[0, 0] = ids[0, 0]
        return ids, label, torch.randint(2, (self.n,))

    def forward(self, ids, label, follows):
        s = ids.shape[1]
        kind = (torch.arange(s) >= s // 2).long().expand(ids.shape)
        x = self.norm(self.word(ids) + self.place(torch.arange(s)) + self.kind(kind))
        x, pad = x.transpose(0, 1), ids.eq(0)
        for layer in self.layers:
            x = layer(x, pad)
        x = x.transpose(0, 1)
        y = F.linear(self.n2(F.gelu(self.turn(x))), self.word.weight, self.bias)
        loss = F.cross_entropy(y.reshape(-1, self.vocab), label.reshape(-1), ignore_index=-100)
        first = x[:, 0]
        if self.look is not None:   # all words, as far as each is worth a look
            a = self.look(x).squeeze(-1).masked_fill(pad, float("-inf"))
            first = torch.matmul(F.softmax(a, dim=-1).unsqueeze(1), x.to(a.dtype)).squeeze(1)
        return loss + F.cross_entropy(self.next(torch.tanh(self.pool(first))), follows)


class Rms(nn.Module):
    def __init__(self, d, eps=1e-6):
        super().__init__()
        self.weight, self.eps = nn.Parameter(1 + 0.1 * torch.randn(d)), eps

    def forward(self, x):
        y = x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * y.to(x.dtype)


class LlamaLayer(nn.Module):
    def __init__(self, d, heads, shared):
        super().__init__()
        self.heads, self.few, self.size = heads, heads // shared, d // heads
        self.n1, self.n2 = Rms(d), Rms(d)
        self.q, self.o = nn.Linear(d, d, bias=False), nn.Linear(d, d, bias=False)
        self.k, self.v = (nn.Linear(d, self.few * self.size, bias=False) for _ in range(2))
        self.gate, self.up = nn.Linear(d, 2 * d, bias=False), nn.Linear(d, 2 * d, bias=False)
        self.down = nn.Linear(2 * d, d, bias=False)

    def turn(self, x, cos, sin):
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat((-b, a), -1) * sin

    def forward(self, x, cos, sin, mask):
        b, s, d = x.shape
        y = self.n1(x)
        q = self.q(y).view(b, s, self.heads, self.size).transpose(1, 2)
        k, v = (p(y).view(b, s, self.few, self.size).transpose(1, 2) for p in (self.k, self.v))
        q, k = self.turn(q, cos, sin), self.turn(k, cos, sin)
        k, v = (t.repeat_interleave(self.heads // self.few, 1) for t in (k, v))
        a = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(self.size) + mask
        a = F.softmax(a, dim=-1, dtype=torch.float32).to(q.dtype)
        x = x + self.o(torch.matmul(a, v).transpose(1, 2).reshape(b, s, d))
        y = self.n2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(Net):
    """Decoder with RMS norms, rotary positions, grouped keys and gated units."""
    can_recompute = True

    def __init__(self, r):
        super().__init__()
        heads, shared = r.choice([(4, 2), (4, 1), (6, 3)])
        d, self.vocab = heads * r.choice([4, 8]), r.choice([67, 101])
        self.size, self.n, self.s = d // heads, r.choice([1, 2]), r.choice([9, 14])
        self.embed = nn.Embedding(self.vocab, d)
        self.layers = nn.ModuleList(LlamaLayer(d, heads, shared) for _ in range(r.choice([2, 3])))
        self.norm, self.head = Rms(d), nn.Linear(d, self.vocab, bias=False)

    def batch(self, r):
        return (torch.randint(self.vocab, (self.n, self.s + 1)),)

    def forward(self, ids):
        s = ids.shape[1] - 1
        x = self.embed(ids[:, :-1])
        rate = 1.0 / (10000 ** (torch.arange(0, self.size, 2).float() / self.size))
        angle = torch.outer(torch.arange(s).float(), rate)
        angle = torch.cat((angle, angle), -1)
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        mask = torch.full((s, s), torch.finfo(x.dtype).min, dtype=x.dtype).triu(1)
        for layer in self.layers:
            x = self.segment(layer, x, cos, sin, mask)
        y = self.head(self.norm(x)).float()
        return F.cross_entropy(y.view(-1, self.vocab), ids[:, 1:].reshape(-1))


class T5(Net):
    """Encoder with relative position bias, no biases and no scale, and a decoder that looks
    at it."""

    def __init__(self, r):
        super().__init__()
        self.heads = r.choice([2, 4])
        self.d, self.vocab = self.heads * r.choice([6, 8]), 70
        self.n, self.s, self.t = 2, r.choice([9, 13]), r.choice([6, 8])
        self.embed = nn.Embedding(self.vocab, self.d)
        self.near = nn.Embedding(8, self.heads)
        act = r.choice([nn.ReLU(), nn.GELU("tanh")])
        self.act = act

        def block(cross):
            d = self.d
            m = {k: nn.Linear(d, d, bias=False) for k in "qkvo"}
            if cross:
                m.update({"c" + k: nn.Linear(d, d, bias=False) for k in "qkvo"}, n3=Rms(d))
            return nn.ModuleDict({**m, "n1": Rms(d), "n2": Rms(d), "up": nn.Linear(d, 2 * d),
                                  "down": nn.Linear(2 * d, d, bias=False)})

        self.enc = nn.ModuleList(block(False) for _ in range(r.choice([1, 2])))
        self.dec = nn.ModuleList(block(True) for _ in range(r.choice([1, 2])))
        self.n1, self.n2 = Rms(self.d), Rms(self.d)

    def batch(self, r):
        return (torch.randint(self.vocab, (self.n, self.s)),
                torch.randint(self.vocab, (self.n, self.t + 1)))

    def bias(self, n):
        i = torch.arange(n)
        far = i[None, :] - i[:, None]
        bucket = (far.abs().clamp(max=3) + 4 * (far > 0).long())
        return self.near(bucket).permute(2, 0, 1).unsqueeze(0)

    def attend(self, m, p, x, y, bias):
        def split(t):
            return t.view(self.n, -1, self.heads, self.d // self.heads).transpose(1, 2)
        q, k, v = split(m[p + "q"](x)), split(m[p + "k"](y)), split(m[p + "v"](y))
        a = torch.matmul(q, k.transpose(3, 2))
        if bias is not None:
            a += bias
        a = F.softmax(a.float(), dim=-1).type_as(a)
        return m[p + "o"](torch.matmul(a, v).transpose(1, 2).contiguous().view(x.shape))

    def forward(self, src, dst):
        x, bias = self.embed(src), self.bias(src.shape[1])
        for m in self.enc:
            y = m["n1"](x)
            x = x + self.attend(m, "", y, y, bias)
            x = x + m["down"](self.act(m["up"](m["n2"](x))))
        mem = self.n1(x)
        x = self.embed(dst[:, :-1])
        hide = torch.triu(torch.full((self.t, self.t), -1e4), 1).to(x.dtype)
        bias = self.bias(self.t) + hide
        for m in self.dec:
            y = m["n1"](x)
            x = x + self.attend(m, "", y, y, bias)
            x = x + self.attend(m, "c", m["n3"](x), mem, None)
            x = x + m["down"](self.act(m["up"](m["n2"](x))))
        y = F.linear(self.n2(x) * self.d ** -0.5, self.embed.weight)
        return F.cross_entropy(y.reshape(-1, self.vocab), dst[:, 1:].reshape(-1))


class Translate(Net):
    """A recurrent encoder, and a decoder that looks at it by additive attention."""

    def __init__(self, r):
        super().__init__()
        self.vocab, h = 60, r.choice([12, 20])
        self.h, self.n, self.s, self.t = h, r.choice([2, 3]), r.choice([4, 5]), r.choice([3, 4])
        self.embed, self.out = nn.Embedding(self.vocab, h), nn.Linear(2 * h, self.vocab)
        self.enc, self.dec = nn.Linear(2 * h, 3 * h), nn.Linear(3 * h, 3 * h)
        self.wq, self.wk, self.wv = nn.Linear(h, h), nn.Linear(h, h, bias=False), \
            nn.Linear(h, 1, bias=False)
        self.smooth = r.choice([0.0, 0.1])

    def batch(self, r):
        return (torch.randint(self.vocab, (self.n, self.s)),
                torch.randint(self.vocab, (self.n, self.t + 1)))

    def cell(self, w, x, h):
        r, z, n = w(torch.cat((x, h), -1)).chunk(3, -1)
        z = torch.sigmoid(z)
        return h + z * (torch.tanh(n * torch.sigmoid(r)) - h)

    def forward(self, src, dst):
        x = self.embed(src)
        h, states = torch.zeros(self.n, self.h, dtype=x.dtype), []
        for t in range(self.s):
            h = self.cell(self.enc, x[:, t], h)
            states.append(h)
        mem = torch.stack(states, 1)
        keys, loss, y = self.wk(mem), 0, self.embed(dst)
        for t in range(self.t):
            e = self.wv(torch.tanh(self.wq(h).unsqueeze(1) + keys)).squeeze(-1)
            c = torch.bmm(F.softmax(e, -1).unsqueeze(1), mem).squeeze(1)
            h = self.cell(self.dec, torch.cat((y[:, t], c), -1), h)
            loss = loss + F.cross_entropy(self.out(torch.cat((h, c), -1)), dst[:, t + 1],
                                          label_smoothing=self.smooth)
        return loss / self.t


class Moe(Net):
    """A decoder whose units are routed: the best two of some experts for each word."""
    can_recompute = True

    def __init__(self, r):
        super().__init__()
        self.heads, self.experts, self.k = 2, r.choice([3, 4, 6]), r.choice([1, 2, 2])
        d, self.vocab = r.choice([16, 24]), 73
        self.n, self.s = 2, r.choice([9, 14])
        self.embed = nn.Embedding(self.vocab, d)
        act = r.choice([nn.GELU, nn.SiLU])
        self.layers = nn.ModuleList()
        for _ in range(r.choice([1, 2])):
            gate = nn.Linear(d, self.experts, bias=False)
            nn.init.normal_(gate.weight, std=0.5)
            if r.random() < 0.5:   # two experts that are equally good
                gate.weight.data[1] = gate.weight.data[0]
            self.layers.append(nn.ModuleDict({
                "n1": nn.LayerNorm(d), "qkv": nn.Linear(d, 3 * d), "o": nn.Linear(d, d),
                "n2": nn.LayerNorm(d), "gate": gate, "experts": nn.ModuleList(
                    nn.Sequential(nn.Linear(d, 2 * d), act(), nn.Linear(2 * d, d))
                    for _ in range(self.experts))}))
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, self.vocab, bias=False)

    def batch(self, r):
        return (torch.randint(self.vocab, (self.n, self.s + 1)),)

    def attend(self, m, x, hide):
        b, s, d = x.shape
        q, k, v = m["qkv"](m["n1"](x)).view(b, s, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        a = torch.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(d // self.heads)
        a = torch.softmax(a.masked_fill(hide, float("-inf")), -1)
        return m["o"](torch.einsum("bhqk,bhkd->bqhd", a, v).reshape(b, s, d))

    def route(self, m, x):
        y = m["n2"](x).view(-1, x.shape[-1])
        p = F.softmax(m["gate"](y), dim=-1)
        w, which = torch.topk(p, self.k, dim=-1)
        w = w / w.sum(-1, keepdim=True)
        out = torch.zeros_like(y)
        for e, expert in enumerate(m["experts"]):
            rows, slot = torch.where(which == e)
            if rows.numel():
                part = expert(y.index_select(0, rows)) * w[rows, slot].unsqueeze(1)
                out = out.index_add(0, rows, part.to(out.dtype))
        load = F.one_hot(which[:, 0], self.experts).to(p.dtype).mean(0)
        return out.view(x.shape), (p.mean(0) * load).sum() * self.experts

    def forward(self, ids):
        s = ids.shape[1] - 1
        x, extra = self.embed(ids[:, :-1]), 0
        hide = torch.ones(s, s, dtype=torch.bool).triu(1)
        for m in self.layers:
            x = x + self.segment(lambda x, m=m: self.attend(m, x, hide), x)
            y, load = self.route(m, x)
            x, extra = x + y, extra + load
        y = self.head(self.norm(x)).view(-1, self.vocab)
        return F.cross_entropy(y, ids[:, 1:].reshape(-1)) + 0.01 * extra


class MoeSort(Net):
    """Routing by sorting: rows in the order of their experts, each expert a slice."""

    def __init__(self, r):
        super().__init__()
        self.experts, self.n, self.d = r.choice([3, 4]), r.choice([24, 40]), r.choice([16, 24])
        h = 2 * self.d
        self.inp = nn.Linear(self.d, self.d)
        self.layers = nn.ModuleList()
        for _ in range(r.choice([2, 3])):
            gate = nn.Linear(self.d, self.experts)
            nn.init.normal_(gate.weight, std=0.4)
            self.layers.append(nn.ModuleDict({
                "norm": nn.LayerNorm(self.d), "gate": gate,
                "up": nn.ModuleList(nn.Linear(self.d, h) for _ in range(self.experts)),
                "gated": nn.ModuleList(nn.Linear(self.d, h) for _ in range(self.experts)),
                "down": nn.ModuleList(nn.Linear(h, self.d) for _ in range(self.experts))}))
        self.head = nn.Linear(self.d, 1)
        self.delta = r.choice([0.5, 1.0])

    def batch(self, r):
        return torch.randn(self.n, self.d), torch.randn(self.n)

    def forward(self, x, y):
        x = self.inp(x)
        for m in self.layers:
            z = m["norm"](x)
            p = torch.softmax(m["gate"](z), 1)
            w, e = p.max(1)
            order = torch.argsort(e)
            sizes = torch.bincount(e, minlength=self.experts).tolist()
            parts = z.index_select(0, order).split(sizes)
            parts = [down(F.silu(gated(t)) * up(t)) for t, up, gated, down in
                     zip(parts, m["up"], m["gated"], m["down"])]
            back = torch.argsort(order)
            x = x + torch.cat(parts).index_select(0, back) * w.unsqueeze(1)
        return F.huber_loss(self.head(x).squeeze(1), y, delta=self.delta)


class Performer(Net):
    """Attention by positive features, causal: running sums instead of a softmax."""

    def __init__(self, r):
        super().__init__()
        self.heads, self.n, self.s = 2, 2, r.choice([9, 15])
        self.d, self.vocab = 2 * r.choice([6, 8]), 60
        self.embed, self.place = nn.Embedding(self.vocab, self.d), \
            nn.Parameter(0.2 * torch.randn(self.s, self.d))
        self.layers = nn.ModuleList(nn.ModuleDict({
            "norm": nn.LayerNorm(self.d), "qkv": nn.Linear(self.d, 3 * self.d),
            "o": nn.Linear(self.d, self.d), "n2": nn.LayerNorm(self.d),
            "up": nn.Linear(self.d, 4 * self.d), "down": nn.Linear(2 * self.d, self.d)})
            for _ in range(r.choice([2, 3])))
        self.head = nn.Linear(self.d, self.vocab)
        self.form = r.choice(["elu", "exp", "relu"])

    def batch(self, r):
        return (torch.randint(self.vocab, (self.n, self.s + 1)),)

    def features(self, x):
        if self.form == "exp":
            return torch.exp(x - x.pow(2).sum(-1, keepdim=True) / 2) + 1e-3
        return F.elu(x) + 1 if self.form == "elu" else F.relu(x) + 1e-2

    def forward(self, ids):
        x = self.embed(ids[:, :-1]) + self.place
        for m in self.layers:
            q, k, v = m["qkv"](m["norm"](x)).view(self.n, self.s, 3, self.heads, -1).unbind(2)
            q, k = self.features(q * 0.5), self.features(k * 0.5)
            kv = torch.cumsum(k.unsqueeze(-1) * v.unsqueeze(-2), 1)
            z = (q * torch.cumsum(k, 1)).sum(-1, keepdim=True)
            y = torch.einsum("bshd,bshde->bshe", q, kv) / z
            x = x + m["o"](y.reshape(self.n, self.s, self.d))
            x = x + m["down"](F.glu(m["up"](m["n2"](x)), -1))
        y = self.head(x)
        return F.nll_loss(F.log_softmax(y, -1).flatten(0, 1), ids[:, 1:].flatten())


class Ssm(Net):
    """State space layers: a selective scan, step by step, with gates."""

    def __init__(self, r):
        super().__init__()
        self.d, self.state = r.choice([8, 12]), r.choice([4, 6])
        self.n, self.s, self.vocab = 2, r.choice([6, 9]), 50
        self.embed = nn.Embedding(self.vocab, self.d)
        self.layers = nn.ModuleList()
        for _ in range(r.choice([1, 2])):
            self.layers.append(nn.ModuleDict({
                "norm": Rms(self.d), "inp": nn.Linear(self.d, 2 * self.d, bias=False),
                "conv": nn.Conv1d(self.d, self.d, 3, padding=2, groups=self.d),
                "bc": nn.Linear(self.d, 2 * self.state, bias=False),
                "dt": nn.Linear(self.d, self.d), "out": nn.Linear(self.d, self.d, bias=False)}))
        self.a = nn.Parameter(torch.log(torch.arange(1, self.state + 1).float())
                              .repeat(self.d, 1))
        self.skip = nn.Parameter(torch.ones(self.d))
        self.head = nn.Linear(self.d, self.vocab)

    def batch(self, r):
        return (torch.randint(self.vocab, (self.n, self.s + 1)),)

    def forward(self, ids):
        x = self.embed(ids[:, :-1])
        for m in self.layers:
            u, gate = m["inp"](m["norm"](x)).chunk(2, -1)
            u = F.silu(m["conv"](u.transpose(1, 2))[..., :self.s].transpose(1, 2))
            b, c = m["bc"](u).chunk(2, -1)
            dt = F.softplus(m["dt"](u))
            a = torch.exp(dt.unsqueeze(-1) * -torch.exp(self.a))
            bu = dt.unsqueeze(-1) * b.unsqueeze(2) * u.unsqueeze(-1)
            h, ys = torch.zeros(self.n, self.d, self.state, dtype=x.dtype), []
            for t in range(self.s):
                h = a[:, t] * h + bu[:, t]
                ys.append((h * c[:, t].unsqueeze(1)).sum(-1))
            y = torch.stack(ys, 1) + u * self.skip
            x = x + m["out"](y * F.silu(gate))
        return F.cross_entropy(self.head(x).flatten(0, 1), ids[:, 1:].flatten())


class Tcn(Net):
    """Dilated causal convolutions with gates over a series; what comes next."""

    def __init__(self, r):
        super().__init__()
        self.c, self.n, self.s = r.choice([3, 5]), r.choice([3, 6]), r.choice([24, 40])
        h = r.choice([12, 16])
        self.inp, self.out = nn.Conv1d(self.c, h, 1), nn.Conv1d(h, self.c, 1)
        self.layers = nn.ModuleList(nn.ModuleDict({
            "conv": nn.Conv1d(h, 2 * h, 2, dilation=1 << i), "mix": nn.Conv1d(h, h, 1),
            "norm": nn.BatchNorm1d(h)}) for i in range(r.choice([3, 4, 5])))
        self.loss = r.choice(["mse_loss", "smooth_l1_loss", "l1_loss"])

    def batch(self, r):
        return (torch.randn(self.n, self.c, self.s + 1).cumsum(-1) * 0.3,)

    def forward(self, x):
        y, x = x[..., 1:], self.inp(x[..., :-1])
        skips = 0
        for i, m in enumerate(self.layers):
            z = m["conv"](F.pad(x, (1 << i, 0)))
            a, b = z.chunk(2, 1)
            z = m["mix"](torch.tanh(a) * torch.sigmoid(b))
            skips = z + skips
            x = m["norm"](x + z)
        y_hat = self.out(F.relu(skips))
        return getattr(F, self.loss)(y_hat, y)


class Ctc(Net):
    """Frames to letters: convolutions, a hand-written recurrence, ctc_loss."""

    def __init__(self, r):
        super().__init__()
        self.f, self.n, self.s, self.letters = 12, r.choice([2, 3]), r.choice([16, 20]), 9
        h = r.choice([12, 16])
        self.h = h
        self.conv = nn.ModuleList([nn.Conv1d(self.f, h, 3, 1, 1), nn.Conv1d(h, h, 3, 2, 1)])
        self.norm = nn.GroupNorm(2, h)
        self.x, self.y, self.out = nn.Linear(h, h), nn.Linear(h, h, bias=False), \
            nn.Linear(h, self.letters)
        self.act = r.choice([nn.Hardtanh(), nn.LeakyReLU(0.1), nn.GELU()])

    def batch(self, r):
        return (torch.randn(self.n, self.f, self.s), torch.randint(1, self.letters, (self.n, 3)),
                torch.full((self.n,), self.s // 2), torch.tensor([3, 2, 3][:self.n]))

    def forward(self, x, y, n_in, n_out):
        for c in self.conv:
            x = self.act(c(x))
        x = self.x(self.norm(x).permute(2, 0, 1))
        h, out = torch.zeros(self.n, self.h, dtype=x.dtype), []
        for t in range(x.shape[0]):
            h = torch.tanh(x[t] + self.y(h))
            out.append(h)
        lp = F.log_softmax(self.out(torch.stack(out)), dim=-1)
        return F.ctc_loss(lp.float(), y, n_in, n_out)


class Crf(Net):
    """Tags by a conditional random field over a window of words."""

    def __init__(self, r):
        super().__init__()
        self.vocab, self.tags, self.n, self.s = 60, r.choice([5, 7]), r.choice([3, 4]), \
            r.choice([7, 11])
        d = r.choice([12, 16])
        self.embed, self.conv = nn.Embedding(self.vocab, d), nn.Conv1d(d, 2 * d, 3, padding=1)
        self.out = nn.Linear(2 * d, self.tags)
        self.first, self.step = nn.Parameter(0.3 * torch.randn(self.tags)), \
            nn.Parameter(0.3 * torch.randn(self.tags, self.tags))

    def batch(self, r):
        return (torch.randint(self.vocab, (self.n, self.s)),
                torch.randint(self.tags, (self.n, self.s)))

    def forward(self, ids, tags):
        x = F.dropout(self.embed(ids), 0.0, True).transpose(1, 2)
        e = self.out(torch.relu(self.conv(x)).transpose(1, 2))
        a = self.first + e[:, 0]
        score = a.gather(1, tags[:, :1]).squeeze(1)
        for t in range(1, self.s):
            a = torch.logsumexp(a.unsqueeze(2) + self.step, dim=1) + e[:, t]
            score = score + self.step[tags[:, t - 1], tags[:, t]] + \
                e[:, t].gather(1, tags[:, t:t + 1]).squeeze(1)
        return (torch.logsumexp(a, 1) - score).sum() / self.n


class Perceiver(Net):
    """A few latents look at many inputs, and at each other; multi_head_attention_forward."""

    def __init__(self, r):
        super().__init__()
        heads = 2
        d, self.k = heads * r.choice([6, 8]), r.choice([4, 6])
        self.n, self.s, self.f, self.classes = 2, r.choice([20, 30]), 7, 5
        self.latents = nn.Parameter(0.5 * torch.randn(self.k, 1, d))
        self.inp, self.head = nn.Linear(self.f, d), nn.Linear(d, self.classes)
        self.look = nn.Linear(d, 1)
        self.layers = nn.ModuleList(nn.ModuleDict({
            "nq": nn.LayerNorm(d), "nk": nn.LayerNorm(d), "n3": nn.LayerNorm(d),
            "look": nn.MultiheadAttention(d, heads), "think": nn.MultiheadAttention(d, heads),
            "up": nn.Linear(d, 2 * d), "down": nn.Linear(2 * d, d)})
            for _ in range(r.choice([2, 3])))

    def batch(self, r):
        return (torch.randn(self.s, self.n, self.f), torch.randint(self.classes, (self.n,)),
                torch.rand(self.n, self.s) < 0.2)

    def forward(self, x, y, hidden):
        x = self.inp(x)
        z = self.latents.expand(-1, self.n, -1)
        for m in self.layers:
            q, k = m["nq"](z), m["nk"](x)
            z = z + m["look"](q, k, k, key_padding_mask=hidden, need_weights=False)[0]
            q = m["nq"](z)
            z = z + m["think"](q, q, q)[0]
            z = z + m["down"](F.gelu(m["up"](m["n3"](z))))
        a = self.look(x).squeeze(-1).t().masked_fill(hidden, float("-inf"))
        seen = torch.einsum("ns,snd->nd", torch.softmax(a, -1).to(x.dtype), x)
        lp = F.log_softmax(self.head(z.mean(0) + seen), -1)
        return F.nll_loss(lp, y)


NETS = {"gpt": ("teach", Gpt), "lstm": ("teach", Lstm), "t5": ("teach", T5),
        "moe": ("teach", Moe), "translate": ("teach", Translate), "ssm": ("teach", Ssm),
        "ctc": ("teach", Ctc),
        "gru": ("report", Gru), "bert": ("report", Bert), "llama": ("report", Llama),
        "moesort": ("report", MoeSort), "performer": ("report", Performer),
        "tcn": ("report", Tcn), "crf": ("report", Crf), "perceiver": ("report", Perceiver)}
