"""Networks of sound.py of which each rank has a part: of weights, of layers, of a sequence, of experts, of an image."""
import torch
import torch.distributed as dist
import torch.nn.functional as F

from sound_net import AVG, Cut, Deal, Fetch, Join, Net, Same, Sum


def backward(net, loss):
    net.losses.append(loss.item())
    loss.backward()


def push(net, x, g):
    """The way back of a stage that has no loss."""
    torch.autograd.backward([x], [g])


class Worded(torch.autograd.Function):
    """Cross entropy, one for each word, of logits of which each rank has those of its part of the vocabulary."""

    @staticmethod
    def forward(ctx, x, labels, group):
        top = x.max(-1)[0]
        dist.all_reduce(top, op=dist.ReduceOp.MAX, group=group)
        x = x - top.unsqueeze(-1)
        first = dist.get_rank(group) * x.shape[-1]
        other = (labels < first) | (labels >= first + x.shape[-1])
        at = (labels - first).masked_fill(other, 0)
        mine = torch.gather(x, -1, at.unsqueeze(-1)).squeeze(-1).masked_fill(other, 0.0)
        dist.all_reduce(mine, group=group)
        e = x.exp()
        total = e.sum(-1)
        dist.all_reduce(total, group=group)
        ctx.save_for_backward(e / total.unsqueeze(-1), at, other)
        return total.log() - mine

    @staticmethod
    def backward(ctx, g):
        p, at, other = ctx.saved_tensors
        one = F.one_hot(at, p.shape[-1]).type_as(p) * (~other).unsqueeze(-1)
        return (p - one) * g.unsqueeze(-1), None, None


class Gpt(Net):
    """Tensor parallel with the vocabulary; heads of queries are shared out, and so are those of keys, of which there
    are fewer; the table is the head. Gradients are clipped by the norm of all ranks' parts."""
    D, T, V, HEADS, KV, HD, B, INSIDE = 8, 6, 20, 4, 2, 4, 2, True

    def tensor(self):
        return None

    def build(self):
        self.tp = self.tensor()
        n, r = dist.get_world_size(self.tp), dist.get_rank(self.tp)
        d, part = self.D, lambda w, axis: self.split(w, axis, n, r)
        self.heads, self.kv = self.HEADS // n, self.KV // n
        self.w = {"table": part(self.new(self.V, d), 0), "at": self.new(self.T, d), "nf": 1 + self.new(d),
                  "nb": self.new(d)}
        for i in range(2):
            q, k, v = (self.new(h * self.HD, d) for h in (self.HEADS, self.KV, self.KV))
            self.w |= {f"n{i}": 1 + self.new(d), f"m{i}": 1 + self.new(d), f"ob{i}": self.new(d),
                       f"qkv{i}": torch.cat([part(q, 0), part(k, 0), part(v, 0)]),
                       f"o{i}": part(self.new(d, self.HEADS * self.HD), 1),
                       f"u{i}": part(self.new(16, d), 0), f"ub{i}": part(self.new(16), 0),
                       f"d{i}": part(self.new(d, 16), 1), f"db{i}": self.new(d)}

    def looked(self, ids):
        size = len(self.w["table"])
        first = dist.get_rank(self.tp) * size
        other = (ids < first) | (ids >= first + size)
        x = F.embedding((ids - first).masked_fill(other, 0), self.w["table"])
        return Sum.apply(x.masked_fill(other.unsqueeze(-1), 0.0), self.tp)

    def attended(self, i, a):
        b, t, hd = self.B, self.T, self.HD
        q, k, v = F.linear(a, self.w[f"qkv{i}"]).split([self.heads * hd, self.kv * hd, self.kv * hd], -1)
        q = q.view(b, t, self.kv, -1, hd)
        k, v = (x.reshape(b, t, self.kv, hd) for x in (k, v))
        p = torch.einsum("bqkgd,bskd->bkgqs", q, k) * hd ** -0.5
        p = p + torch.full((t, t), float("-inf")).triu(1)
        return torch.einsum("bkgqs,bskd->bqkgd", p.softmax(-1), v).reshape(b, t, -1)

    def layers(self, x, which=(0, 1)):
        for i in which:
            a = Same.apply(F.layer_norm(x, (self.D,), self.w[f"n{i}"]), self.tp)
            x = x + Sum.apply(F.linear(self.attended(i, a), self.w[f"o{i}"]), self.tp) + self.w[f"ob{i}"]
            a = Same.apply(F.layer_norm(x, (self.D,), self.w[f"m{i}"]), self.tp)
            h = F.relu(F.linear(a, self.w[f"u{i}"], self.w[f"ub{i}"])) ** 2
            x = x + (Sum.apply(F.linear(h, self.w[f"d{i}"]), self.tp) + self.w[f"db{i}"])
        return x

    def lost(self, x, labels):
        a = Same.apply(F.layer_norm(x, (self.D,), self.w["nf"], self.w["nb"]), self.tp)
        return Worded.apply(a @ self.w["table"].t(), labels, self.tp).mean()

    def texts(self, s, rank=0):
        ids = self.ids(s, self.V, self.B, self.T + 1, rank=rank)
        return ids[:, :-1], ids[:, 1:]

    def step(self, s):
        ids, labels = self.texts(s)
        backward(self, self.lost(self.layers(self.looked(ids) + self.w["at"]), labels))

    def whole(self, k):
        return k[0] in "nma" or k[:2] in ("ob", "db")

    def update(self, s):
        parts = sum((self.w[k].grad ** 2).sum() for k in self.w if not self.whole(k))
        dist.all_reduce(parts, group=self.tp)
        norm = torch.sqrt(parts + sum((self.w[k].grad ** 2).sum() for k in self.w if self.whole(k)))
        by = min(1.0, 0.5 / (norm.item() + 1e-6))
        for w in self.w.values():
            w.grad.mul_(by)
        self.adam(s, decay=0.01)


class GptCopies(Gpt):
    """The same in two copies, of other samples; gradients are averaged over the copies, bucket by bucket."""
    RANKS = 4

    def tensor(self):
        pairs = [dist.new_group(p) for p in ([0, 1], [2, 3], [0, 2], [1, 3])]
        self.dp = pairs[2 + self.r % 2]
        return pairs[self.r // 2]

    def step(self, s):
        ids, labels = self.texts(s, rank=self.r // 2)
        backward(self, self.lost(self.layers(self.looked(ids) + self.w["at"]), labels))
        names = list(self.w)
        self.bucket(names[len(names) // 2:], group=self.dp)
        self.bucket(names[:len(names) // 2], group=self.dp)


class GptStages(Gpt):
    """Two stages of two ranks each, which share weights; three micro-batches, all there and then all back. The table is
    on both stages, which sum its gradient."""
    RANKS, M, SHARE = 4, 3, 0.5

    def tensor(self):
        pairs = [dist.new_group(p) for p in ([0, 1], [2, 3], [0, 2], [1, 3])]
        self.stage, self.other, self.ends = self.r // 2, (self.r + 2) % 4, pairs[2 + self.r % 2]
        return pairs[self.stage]

    def build(self):
        super().build()
        drop = (("1", "nf", "nb"), ("0", "at"))[self.stage]
        self.w = {k: w for k, w in self.w.items() if not k.endswith(drop)}

    def step(self, s):
        kept = []
        for m in range(self.M):
            ids, labels = self.texts(s + 10 * m)
            if self.stage == 0:
                kept.append(self.layers(self.looked(ids) + self.w["at"], (0,)))
                dist.send(kept[m].detach(), self.other)
            else:
                got = torch.zeros(self.B, self.T, self.D)
                dist.recv(got, self.other)
                got.requires_grad_()
                kept.append((got, self.lost(self.layers(got, (1,)), labels) / self.M))
        for x in reversed(kept):
            if self.stage == 0:
                g = torch.zeros(self.B, self.T, self.D)
                dist.recv(g, self.other)
                push(self, x, g)
            else:
                backward(self, x[1])
                dist.send(x[0].grad, self.other)
        dist.all_reduce(self.w["table"].grad, group=self.ends)

    def update(self, s):
        self.momentum()


class Sequence(Net):
    """Tensor and sequence parallel: what is not split by weights is by words, and drops by each rank's own stream;
    norms' and biases' gradients are summed."""
    D, T, FF, V = 8, 6, 10, 11

    def build(self):
        d = self.D
        self.w = {"embed": self.new(self.V, d), "head": self.split(self.new(12, d), 0), "nf": 1 + self.new(d)}
        for i in range(2):
            self.w |= {f"n{i}": 1 + self.new(d), f"nb{i}": self.new(d), f"u{i}": self.split(self.new(self.FF, d), 0),
                       f"g{i}": self.split(self.new(self.FF, d), 0), f"d{i}": self.split(self.new(d, self.FF), 1),
                       f"nd{i}": self.new(d), f"mix{i}": self.split(self.new(self.T, self.T, by=0.5), 0),
                       f"nm{i}": 1 + self.new(d)}

    def step(self, s):
        torch.manual_seed(100 * self.seed + 10 * s + self.r)
        ids, labels = self.ids(s, self.V, self.T, rank=0), self.ids(s + 50, 12, self.T, rank=0)
        x = F.dropout(F.embedding(ids.chunk(self.n)[self.r], self.w["embed"]), 0.1)
        for i in range(2):
            a = Fetch.apply(F.layer_norm(x, (self.D,), self.w[f"nm{i}"]))
            x = x + torch.tanh(self.w[f"mix{i}"] @ a)
            a = Fetch.apply(F.layer_norm(x, (self.D,), self.w[f"n{i}"], self.w[f"nb{i}"]))
            h = torch.sigmoid(F.linear(a, self.w[f"g{i}"])) * F.linear(a, self.w[f"u{i}"])
            x = x + F.dropout(Deal.apply(F.linear(h, self.w[f"d{i}"])) + self.w[f"nd{i}"], 0.1, True)
        a = Fetch.apply(F.layer_norm(x, (self.D,), self.w["nf"]))
        backward(self, Worded.apply(F.linear(a, self.w["head"]), labels, None).sum() / self.T)
        flat = [k for k in self.w if k[0] == "n" or k == "embed"]
        self.bucket(flat, op=dist.ReduceOp.SUM)


class Ring(torch.autograd.Function):
    """To the next rank of a ring; gradients come back."""

    @staticmethod
    def forward(ctx, x, way=1):
        ctx.way = way
        n, r = dist.get_world_size(), dist.get_rank()
        got, x = torch.zeros(x.shape), x.contiguous()
        for turn in range(2):
            if turn == (r != 0):
                dist.send(x, (r + way) % n)
            else:
                dist.recv(got, (r - way) % n)
        return got

    @staticmethod
    def backward(ctx, g):
        return Ring.forward(ctx, g, -ctx.way), None


class RingAttention(Net):
    """Parts of a sequence on three ranks; keys go round, and what is later is left out, so that the first rank does
    less than the last. Sums and maxima begin with 0 and -inf."""
    RANKS, D, T, H, V, SHARE = 3, 8, 9, 2, 10, 1

    def build(self):
        self.w = {"embed": self.new(self.V, self.D), "at": self.new(self.T, self.D), "head": self.new(self.V, self.D)}
        for i in range(2):
            self.w |= {f"n{i}": 1 + self.new(self.D), f"q{i}": self.new(self.D, self.D),
                       f"kv{i}": self.new(2 * self.D, self.D), f"o{i}": self.new(self.D, self.D)}

    def attended(self, q, kv):
        mine = self.T // self.n
        total, top, y = torch.zeros(self.H, mine, 1), torch.full((self.H, mine, 1), float("-inf")), 0.0
        for i in range(self.n):
            source = (self.r - i) % self.n
            if source <= self.r:
                k, v = kv
                p = torch.matmul(q, k.transpose(1, 2)) * 0.5
                if source == self.r:
                    p = p.masked_fill(torch.ones(mine, mine).triu(1).bool(), float("-inf"))
                high = torch.maximum(top, p.detach().max(-1, keepdim=True)[0])
                e, old = torch.exp(p - high), torch.exp(top - high)
                total, y, top = total * old + e.sum(-1, keepdim=True), y * old + torch.matmul(e, v), high
            if i < self.n - 1:
                kv = Ring.apply(kv)
        return y / total, kv

    def step(self, s):
        whole = self.ids(s, self.V, self.T + 1, rank=0)
        ids, labels = (x.chunk(self.n)[self.r] for x in (whole[:-1], whole[1:]))
        mine = len(ids)
        x = F.embedding(ids, self.w["embed"]) + self.w["at"][self.r * mine:(self.r + 1) * mine]
        last = 0.0
        for i in range(2):
            a = F.layer_norm(x, (self.D,), self.w[f"n{i}"])
            q = F.linear(a, self.w[f"q{i}"]).view(mine, self.H, -1).transpose(0, 1)
            kv = F.linear(a, self.w[f"kv{i}"]).view(mine, 2, self.H, -1).permute(1, 2, 0, 3)
            y, kv = self.attended(q, kv)
            last = last + kv.sum() * 0.0   # the way back is the same on all ranks
            x = x + F.linear(y.transpose(0, 1).reshape(mine, -1), self.w[f"o{i}"])
        loss = F.cross_entropy(F.linear(x, self.w["head"]), labels, reduction="sum") / self.T
        backward(self, loss + last)
        self.bucket(op=dist.ReduceOp.SUM)


class Exchange(torch.autograd.Function):
    """Rows to ranks, in one operand; the number of each is given."""

    @staticmethod
    def forward(ctx, x, sent, taken):
        ctx.sizes = sent, taken
        out = torch.zeros((sum(taken),) + x.shape[1:], dtype=x.dtype)
        dist.all_to_all_single(out, x.contiguous(), taken, sent)
        return out

    @staticmethod
    def backward(ctx, g):
        sent, taken = ctx.sizes
        return Exchange.forward(ctx, g, taken, sent), None, None


class Heads(Net):
    """Parts of a sequence, and of heads while words are looked at; the loss is the mean of means."""
    D, T, H = 8, 8, 4

    def build(self):
        for i in range(2):
            self.w |= {f"qkv{i}": self.new(3 * self.D, self.D), f"o{i}": self.new(self.D, self.D),
                       f"u{i}": self.new(self.D, self.D), f"n{i}": 1 + self.new(self.D)}

    def turned(self, x):
        """Words by heads to other words by other heads, as its own inverse but for the axes."""
        even = [len(x) // self.n] * self.n
        return Exchange.apply(x, even, even)

    def step(self, s):
        x, want = (self.data(s + k, self.T, self.D, rank=0).chunk(self.n)[self.r] for k in (0, 50))
        mine, hd = self.T // self.n, self.D // self.H
        for i in range(2):
            a = F.layer_norm(x, (self.D,), self.w[f"n{i}"])
            qkv = torch.einsum("td,cd->tc", a, self.w[f"qkv{i}"]).view(mine, 3, self.H, hd).permute(2, 1, 0, 3)
            h = self.H // self.n
            q, k, v = self.turned(qkv.contiguous()).view(self.n, h, 3, mine, hd).permute(2, 1, 0, 3, 4) \
                .reshape(3, h, self.T, hd).unbind(0)
            p = torch.softmax(q @ k.transpose(-1, -2) / hd ** 0.5, -1)
            y = torch.matmul(p, v).view(h, self.n, mine, hd).transpose(0, 1).reshape(self.H, mine, hd)
            y = self.turned(y).permute(1, 0, 2).reshape(mine, self.D)
            x = x + torch.einsum("td,cd->tc", y, self.w[f"o{i}"])
            x = x + torch.tanh(torch.einsum("td,cd->tc", x, self.w[f"u{i}"]))
        backward(self, F.mse_loss(x, want))
        self.each(AVG)


class Experts(Net):
    """Two experts on each rank; words go to the best two, of which each takes so many of a rank's and drops the rest.
    What keeps loads even is of the words of all ranks. An expert may get no word at all."""
    D, T, E, K, H, CAP = 6, 7, 4, 2, 5, 4

    def build(self):
        self.per = self.E // self.n
        self.w = {"in": self.new(self.D, self.D), "out": self.new(3, self.D)}
        for i in range(2):
            self.w |= {f"n{i}": 1 + self.new(self.D), f"r{i}": self.new(self.E, self.D)}
            for e in range(self.E):
                u, d = self.new(self.H, self.D), self.new(self.D, self.H)
                if e // self.per == self.r:
                    self.w |= {f"e{i}{e}": u, f"f{i}{e}": d}
        self.w["r1"][3] -= 2.0

    def routed(self, p):
        """Of each expert, the words that it takes; those with more weight first."""
        top = torch.topk(p, self.K, -1)[1]
        picked = F.one_hot(top, self.E).sum(1)
        lists = []
        for e in range(self.E):
            likes = (p.detach()[:, e] * picked[:, e])
            order = torch.sort(likes, descending=True)[1][:min(self.CAP, int(picked[:, e].sum()))]
            lists.append(order)
        return picked, lists

    def layer(self, i, a):
        logits = F.linear(a, self.w[f"r{i}"])
        p = torch.softmax(logits, dim=-1)
        picked, lists = self.routed(p)
        load = picked.type_as(p).mean(0)
        dist.all_reduce(load, op=AVG)
        even = self.E * (load * p.mean(0)).sum() + 0.1 * torch.logsumexp(logits, -1).pow(2).mean()
        counts = torch.tensor([len(x) for x in lists])
        other = torch.zeros(self.E, dtype=torch.long)
        dist.all_to_all_single(other, counts)
        sent, taken = (c.view(self.n, self.per).sum(1).tolist() for c in (counts, other))
        order = torch.cat(lists)
        x = Exchange.apply(a[order], sent, taken)
        pieces, outs = x.split(other.tolist()), [None] * self.E
        for j in range(self.per):
            e = self.r * self.per + j
            mine = [pieces[r * self.per + j] for r in range(self.n)]
            h = F.relu(F.linear(torch.cat(mine), self.w[f"e{i}{e}"]))
            for r, y in enumerate(F.linear(h, self.w[f"f{i}{e}"]).split([len(m) for m in mine])):
                outs[r * self.per + j] = y
        back = Exchange.apply(torch.cat(outs), taken, sent)
        expert = torch.repeat_interleave(torch.arange(self.E), counts)
        return torch.zeros(a.shape).index_add(0, order, back * p[order, expert].unsqueeze(1)), even

    def step(self, s):
        x, even = self.data(s, self.T, self.D) @ self.w["in"], 0.0
        for i in range(2):
            y, e = self.layer(i, F.layer_norm(x, (self.D,), self.w[f"n{i}"]))
            x, even = x + y, even + e
        backward(self, F.cross_entropy(F.linear(x, self.w["out"]), self.ids(s + 50, 3, self.T)) + 0.01 * even)
        for k, w in self.w.items():
            if k[0] not in "ef":
                dist.all_reduce(w.grad, op=AVG)
            elif w.grad is not None:
                w.grad.div_(self.n)


class Gates(Experts):
    """The same; what keeps loads even sees the rank's own words alone, and experts take all that come."""
    CAP, RANKS = 99, 4

    def layer(self, i, a):
        y, _ = super().layer(i, a)
        p = torch.softmax(F.linear(a, self.w[f"r{i}"]), -1)
        load = self.routed(p)[0].type_as(p).mean(0)
        return y, self.E * torch.dot(load, p.mean(0))


class Alternate(Net):
    """Two stages, one forward and one backward in turn; the table is the head, too."""
    D, B, T, V, M, L, STEPS, SHARE = 8, 2, 4, 10, 4, (2, 2), 2, 1

    def build(self):
        self.w = {"table": self.new(self.V, self.D)}
        for i in range(sum(self.L)):
            u, d, n = self.new(12, self.D), self.new(self.D, 12), 1 + self.new(self.D)
            if self.of_stage(i) == self.r:
                self.w |= {f"u{i}": u, f"d{i}": d, f"n{i}": n}

    def of_stage(self, i):
        return next(r for r in range(self.n) if i < sum(self.L[:r + 1]))

    def chunk(self, x, which):
        for i in which:
            x = x + F.linear(F.silu(F.linear(F.layer_norm(x, (self.D,), self.w[f"n{i}"]), self.w[f"u{i}"])),
                             self.w[f"d{i}"])
        return x

    def there(self, s, m):
        ids = self.ids(s + 10 * m, self.V, self.B, self.T + 1, rank=0)
        mine = [i for i in range(sum(self.L)) if self.of_stage(i) == self.r]
        x = None
        if self.r == 0:
            y = self.chunk(F.embedding(ids[:, :-1], self.w["table"]), mine)
        else:
            x = torch.zeros(self.B, self.T, self.D)
            dist.recv(x, self.r - 1)
            self.sent_back()
            y = self.chunk(x.requires_grad_(), mine)
        if self.r == self.n - 1:
            out = F.linear(y, self.w["table"]).view(-1, self.V)
            return x, F.cross_entropy(out, ids[:, 1:].reshape(-1)) / self.M
        dist.send(y.detach(), self.r + 1)
        return x, y

    def back(self, x, y):
        if self.r == self.n - 1:
            backward(self, y)
        else:
            g = torch.zeros(y.shape)
            dist.recv(g, self.r + 1)
            push(self, y, g)
        if x is not None:
            self.late = x.grad

    def sent_back(self):
        """What goes back does so when the next has come, lest both sides wait for the other to take."""
        if self.late is not None:
            dist.send(self.late, self.r - 1)
        self.late = None

    def step(self, s):
        warm, kept, self.late = min(self.n - 1 - self.r, self.M), [], None
        for m in range(self.M + warm):
            if m < self.M:
                kept.append(self.there(s, m))
            if m >= warm:
                self.back(*kept.pop(0))
            if m >= self.M - 1:
                self.sent_back()
        if self.r in (0, self.n - 1):
            dist.all_reduce(self.w["table"].grad, group=self.ends())

    def ends(self):
        return None


class Three(Alternate):
    """The same in three stages, of which the first has one layer more; the middle one has no table."""
    RANKS, L = 3, (2, 1, 1)

    def build(self):
        super().build()
        self.both = dist.new_group([0, 2])
        if self.r == 1:
            del self.w["table"]

    def ends(self):
        return self.both


class Virtual(Alternate):
    """Two chunks of layers on each of two ranks: what the second has made comes back to the first. The loss is told to
    all."""
    L = (1, 1, 1, 1)

    def of_stage(self, i):
        return i % 2

    def pass_on(self, x, to):
        """From the rank that has x to the other."""
        if self.r == to:
            x = torch.zeros(self.B, self.T, self.D)
            dist.recv(x, 1 - to)
            return x.requires_grad_()
        dist.send(x.detach(), to)
        return None

    def step(self, s):
        kept = []
        for m in range(self.M):
            ids, x, chunks = self.ids(s + 10 * m, self.V, self.B, self.T + 1, rank=0), None, []
            for i in range(4):
                if i:
                    x = self.pass_on(x, i % 2)
                if self.r == i % 2:
                    start = x
                    x = F.embedding(ids[:, :-1], self.w["table"]) if i == 0 else x
                    x = self.chunk(x, (i,))
                    chunks.append((start, x))
            if self.r == 1:
                out = F.linear(x, self.w["table"]).view(-1, self.V)
                x = F.cross_entropy(out, ids[:, 1:].reshape(-1)) / self.M
            kept.append((chunks, x))
        for chunks, loss in reversed(kept):
            for i in (3, 2, 1, 0):
                if i == 3:
                    if self.r == 1:
                        backward(self, loss)
                elif self.r == i % 2:
                    g = torch.zeros(self.B, self.T, self.D)
                    dist.recv(g, 1 - self.r)
                    push(self, chunks[i // 2][1], g)
                if i and self.r == i % 2:
                    dist.send(chunks[i // 2][0].grad, 1 - self.r)
        dist.all_reduce(self.w["table"].grad)
        loss = sum(k[1].detach() for k in kept) if self.r == 1 else torch.zeros(())
        dist.broadcast(loss, 1)


class Halo(torch.autograd.Function):
    """A row of pixels from either side, zeros at the ends of the image."""

    @staticmethod
    def swapped(up, down):
        """What goes up and down, for what comes from above and from below."""
        r, n = dist.get_rank(), dist.get_world_size()
        above, below = torch.zeros(up.shape), torch.zeros(up.shape)
        for first in (0, 1):   # pairs that begin with an even rank, then the others
            if r % 2 == first and r + 1 < n:
                dist.send(down.contiguous(), r + 1)
                dist.recv(below, r + 1)
            elif r % 2 != first and r > 0:
                dist.recv(above, r - 1)
                dist.send(up.contiguous(), r - 1)
        return above, below

    @staticmethod
    def forward(ctx, x):
        above, below = Halo.swapped(x[:, :, :1], x[:, :, -1:])
        return torch.cat([above, x, below], 2)

    @staticmethod
    def backward(ctx, g):
        above, below = Halo.swapped(g[:, :, :1], g[:, :, -1:])
        inner = g[:, :, 1:-1].clone(memory_format=torch.contiguous_format)
        inner[:, :, :1] += above
        inner[:, :, -1:] += below
        return inner


class Strips(Net):
    """Each rank has some rows of an image, and its neighbours' next to them; the class is of the whole image."""
    RANKS, C, B, SIDE = 3, 4, 2, 9

    def build(self):
        for i in range(2):
            self.w |= {f"c{i}": self.new(self.C, self.C if i else 2, 3, 3), f"b{i}": self.new(self.C)}
        self.w |= {"fc": self.new(5, self.C), "fb": self.new(5)}

    def step(self, s):
        x = self.data(s, self.B, 2, self.SIDE, self.SIDE, rank=0).chunk(self.n, 2)[self.r]
        for i in range(2):
            x = torch.tanh(F.conv2d(Halo.apply(x), self.w[f"c{i}"], self.w[f"b{i}"], padding=(0, 1)))
        mean = Sum.apply(x.sum((2, 3))) / self.SIDE ** 2
        out = F.linear(mean, self.w["fc"], self.w["fb"])
        backward(self, F.cross_entropy(out, self.ids(s + 50, 5, self.B, rank=0)))
        self.each(names=["c0", "b0", "c1", "b1"])


class Columns(Net):
    """Weights split by columns, what comes out is gathered; then its rows are dealt out, and gathered."""
    D, B = 6, 4

    def build(self):
        self.w = {"a": self.split(self.new(10, self.D), 0), "ab": self.split(self.new(10), 0), "n": 1 + self.new(10),
                  "r": self.new(10, 10), "o": self.split(self.new(3, 10), 1), "ob": self.new(3)}

    def step(self, s):
        x = self.data(s, self.B, self.D, rank=0)
        h = Join.apply(torch.relu(F.linear(Same.apply(x), self.w["a"], self.w["ab"])), 1)
        h = F.layer_norm(h, (10,), self.w["n"])
        rows = Cut.apply(h, 0)
        h = Join.apply(rows + F.softplus(rows @ self.w["r"]), 0)
        y = Sum.apply(F.linear(Cut.apply(h, 1), self.w["o"])) + self.w["ob"]
        backward(self, F.smooth_l1_loss(y, self.data(s + 50, self.B, 3, rank=0)))
        dist.all_reduce(self.w["r"].grad)


NETS = {"gpt": Gpt, "gptcopies": GptCopies, "gptstages": GptStages, "sequence": Sequence, "ring": RingAttention,
        "heads": Heads, "experts": Experts, "gates": Gates, "alternate": Alternate, "three": Three,
        "virtual": Virtual, "strips": Strips, "columns": Columns}
