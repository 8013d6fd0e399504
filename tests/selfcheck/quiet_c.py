"""Right programs of ranks that have parts of a model, a sequence, a space, or a part of their own to play.

Of what torch.distributed.nn sums on its way back, the loss is that of all ranks together: where each has the
whole loss, it counts there by 1 / n. Each train(rank, seed, n) is a user's program; n = 1: one process with all.
"""
import accrecord   # which scripts_frame finds
import torch
import torch.distributed as dist
import torch.distributed.nn.functional as dnf
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from quiet_kit import D, average, choose, ddp, draw, mine, one, state
from scripts_frame import right


class Shift(torch.autograd.Function):
    """To the rank `by` further on, from that as far behind; the ends have nothing to get, or in a ring, all."""
    @staticmethod
    def forward(ctx, x, by, ring):
        ctx.by, ctx.ring = by, ring
        return Shift.move(x, by, ring)

    @staticmethod
    def backward(ctx, g):
        return Shift.move(g, -ctx.by, ctx.ring), None, None

    @staticmethod
    def move(x, by, ring):
        rank, n, got = dist.get_rank(), dist.get_world_size(), torch.zeros_like(x)
        to, source = rank + by, rank - by
        work = dist.isend(x.contiguous(), to % n) if ring or 0 <= to < n else None
        if ring or 0 <= source < n:
            dist.recv(got, source % n)
        if work:
            work.wait()
        return got


# --- summa: weights split by rows and columns over four ranks -----------------------------------------------

def train_summa(rank, seed, n=4):
    i, j = divmod(rank, 2)
    if n > 1:
        row = [dist.new_group(r) for r in ([0, 1], [2, 3])][i]
        column = [dist.new_group(r) for r in ([0, 2], [1, 3])][j]
    torch.manual_seed(seed)
    full = [nn.Linear(D, 12), nn.Linear(12, 4)]
    cut = 2 if n > 1 else 1
    w = [nn.Parameter(f.weight.detach().chunk(cut)[i].chunk(cut, 1)[j].clone()) for f in full]
    b = [nn.Parameter(f.bias.detach().chunk(cut)[i].clone()) for f in full]
    opt = torch.optim.SGD(w + b, lr=0.2, momentum=0.9)
    for s in range(2):
        accrecord.step(s)
        x, y = draw(seed + s, 6, D).chunk(cut, 1)[j], draw(seed + s + 9, 6, 4).chunk(cut, 1)[i]
        for k in range(2):
            x = x @ w[k].t()
            x = (dnf.all_reduce(x, group=row) if n > 1 else x) + b[k]
            if k == 0:
                x = torch.tanh(x)
                # What the row i has, the column i needs: it is told by the rank on the diagonal.
                x = dnf.broadcast(x, 3 * j, group=column) if n > 1 else x
        loss = (x - y).square().sum() / 24 / cut
        opt.zero_grad()
        loss.backward()
        for p in b if n > 1 else []:
            dist.all_reduce(p.grad, group=row)
        opt.step()
    return {f"{name}{k}": p.detach() for name, ps in (("w", w), ("b", b)) for k, p in enumerate(ps)}


def whole_summa(seed):
    whole = train_summa(0, seed, 1)
    return [{k: (v.chunk(2)[i].chunk(2, 1)[j] if k[0] == "w" else v.chunk(2)[i]) for k, v in whole.items()}
            for i in range(2) for j in range(2)]


# --- columns: layers split by their outputs, which all ranks gather -----------------------------------------

class Columns(nn.Linear):
    def __init__(self, rank, n, d, out):
        super().__init__(d, out)
        self.n = n
        self.weight = nn.Parameter(mine(rank, n, self.weight.detach()).clone())
        self.bias = nn.Parameter(mine(rank, n, self.bias.detach()).clone())

    def forward(self, x):
        x = super().forward(x)
        return torch.cat(dnf.all_gather(x), -1) if self.n > 1 else x


def train_columns(rank, seed, n=2):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(6, D), nn.LayerNorm(D), Columns(rank, n, D, 12), nn.GELU(),
                          Columns(rank, n, 12, D), nn.Softplus(), nn.Linear(D, 1))
    opt = torch.optim.NAdam(model.parameters(), lr=0.02, eps=1e-3)
    whole = [p for m in model if not isinstance(m, Columns) for p in m.parameters()]
    for s in range(2):
        x, y = draw(seed + s, 8, 6), draw(seed + s + 9, 8, 1).abs()
        opt.zero_grad()
        (F.poisson_nll_loss(model(x), y) / n).backward()
        average(whole, n, "sum")
        opt.step()
    return state(model)


# --- ulysses: tokens are split, but in attention heads are --------------------------------------------------

def swap(x, n, split, join):
    """From parts of one dimension to parts of the other."""
    if n == 1:
        return x
    parts = [p.contiguous() for p in x.chunk(n, split)]
    return torch.cat(dnf.all_to_all([torch.empty_like(p) for p in parts], parts), join)


class Ulysses(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.n, self.emb, self.norm = n, nn.Embedding(20, D), nn.LayerNorm(D)
        self.qkv, self.out, self.head = nn.Linear(D, 3 * D), nn.Linear(D, D), nn.Linear(D, 20)

    def forward(self, t):
        h = self.emb(t)
        b, own, _ = h.shape
        q, k, v = (swap(z, self.n, 2, 1).transpose(1, 2)
                   for z in self.qkv(self.norm(h)).view(b, own, 3, 4, D // 4).unbind(2))
        scores = q @ k.transpose(2, 3) / (D // 4) ** 0.5
        scores = scores + torch.full(scores.shape[-2:], float("-inf")).triu(1)
        a = swap((scores.softmax(-1) @ v).transpose(1, 2), self.n, 1, 2)
        return self.head(h + self.out(a.reshape(b, own, D)))


def train_ulysses(rank, seed, n=2):
    torch.manual_seed(seed)
    model = Ulysses(n)
    opt = torch.optim.SGD(model.parameters(), lr=0.5)
    for s in range(2):
        t = choose(seed + s, 20, 3, 9)
        x, y = t[:, :-1].chunk(n, 1)[rank], t[:, 1:].chunk(n, 1)[rank]
        opt.zero_grad()
        (F.cross_entropy(model(x).flatten(0, 1), y.flatten(), reduction="sum") / 24).backward()
        average(model.parameters(), n, "sum")
        # All have the same gradients: a norm of them is everyone's.
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
    return state(model)


# --- ringattn: keys and values go round, a softmax is summed up as they come --------------------------------

def train_ringattn(rank, seed, n=3):
    torch.manual_seed(seed)
    model = nn.ModuleDict({k: nn.Linear(D, D) for k in "qkvo"})
    opt = torch.optim.SGD(model.parameters(), lr=0.5)
    for s in range(2):
        accrecord.step(s)
        x, y = (draw(seed + s + k, 2, 6, D).chunk(n, 1)[rank] for k in (0, 9))
        q, k, v = (model[m](x) for m in "qkv")
        top = total = out = 0
        for turn in range(n):
            scores = q @ k.transpose(1, 2) / D ** 0.5
            new = scores.amax(-1, keepdim=True).detach()
            new = torch.maximum(top, new) if turn else new
            e, old = (scores - new).exp(), (top - new).exp() if turn else 0
            total, out, top = total * old + e.sum(-1, keepdim=True), out * old + e @ v, new
            if turn < n - 1:
                k, v = Shift.apply(torch.stack([k, v]), 1, True)
        loss = (model["o"](out / total) - y).square().sum() / y.numel() / n
        opt.zero_grad()
        loss.backward()
        average(model.parameters(), n, "sum")
        opt.step()
    return state(model)


# --- halo: a space in three parts, whose convolutions see a point of their neighbours ------------------------

def train_halo(rank, seed, n=3):
    torch.manual_seed(seed)
    model = nn.ModuleList([nn.Conv1d(2, 4, 3), nn.Conv1d(4, 4, 3), nn.Linear(4, 3)])
    opt = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.5)
    for s in range(2):
        accrecord.step(s)
        x, y = draw(seed + s, 4, 2, 12).chunk(n, 2)[rank], choose(seed + s + 9, 3, 4)
        for conv in model[:2]:
            if n > 1:
                x = torch.cat([Shift.apply(x[..., -1:], 1, False), x, Shift.apply(x[..., :1], -1, False)], -1)
            else:
                x = F.pad(x, (1, 1))
            x = F.relu(conv(x))
        mean = x.sum(-1) / 12
        mean = dnf.all_reduce(mean) if n > 1 else mean
        opt.zero_grad()
        (F.cross_entropy(model[2](mean), y) / n).backward()
        average(model.parameters(), n, "sum")
        opt.step()
    return state(model)


# --- faces: the last layer has a part of all classes, with a margin -----------------------------------------

def train_faces(rank, seed, n=2, classes=12):
    torch.manual_seed(seed)
    back = nn.Sequential(nn.Linear(D, 10), nn.PReLU(10), nn.Linear(10, 6))
    centers = nn.Parameter(mine(rank, n, torch.randn(classes, 6)).clone())
    opt = torch.optim.SGD([{"params": back.parameters()}, {"params": [centers], "lr": 0.2}], lr=0.1, momentum=0.9)
    own, rows = classes // n, torch.arange(8)
    for s in range(2):
        x, y = draw(seed + s, 8, D), choose(seed + s + 9, classes, 8)
        f = back(mine(rank, n, x))
        f = F.normalize(torch.cat(dnf.all_gather(f)) if n > 1 else f)
        # No maximum is taken off: cosines are small enough.
        local = y - rank * own
        here = (local >= 0) & (local < own)
        cos = f @ F.normalize(centers).t()
        margin = torch.zeros_like(cos)
        margin[rows[here], local[here]] = 0.2
        logits = 4 * (cos - margin)
        total = logits.exp().sum(1)
        hit = torch.where(here, logits[rows, local.clamp(0, own - 1)], torch.zeros(()))
        if n > 1:
            total, hit = dnf.all_reduce(torch.stack([total, hit]))
        opt.zero_grad()
        ((total.log() - hit).mean() / n).backward()
        average(back.parameters(), n, "sum")
        opt.step()
    return {**state(back), "centers": centers.detach()}


# --- capacity: experts that take so many tokens of each rank, the others pass them by -----------------------

def train_capacity(rank, seed, n=2, experts=4, room=3):
    torch.manual_seed(seed)
    router = nn.Linear(D, experts, bias=False)
    w1, w2 = (nn.Parameter(mine(rank, n, torch.randn(experts, a, b) * 0.3).clone()) for a, b in ((D, 12), (12, D)))
    head = nn.Linear(D, 3)
    opt = torch.optim.SGD([w1, w2, *router.parameters(), *head.parameters()], lr=0.3, momentum=0.9)
    for s in range(2):
        accrecord.step(s)
        loss = share = probs_sum = 0
        for r in [rank] if n > 1 else range(2):   # the ranks whose tokens these are
            x, y = mine(r, 2, draw(seed + s, 20, D), choose(seed + s + 9, 3, 20))
            probs = router(x).softmax(-1)
            gate, to = probs.max(-1)
            chosen = F.one_hot(to, experts)
            place = (chosen.cumsum(0) * chosen).sum(-1) - 1   # in its expert's queue
            kept = place < room
            slots = torch.zeros(experts, room, D).index_put((to[kept], place[kept]), x[kept])
            slots = swap(slots, n, 0, 1)   # all ranks' tokens for this rank's experts
            slots = swap(torch.relu(slots @ w1) @ w2, n, 1, 0)
            out = x.index_put((kept.nonzero()[:, 0],), slots[to[kept], place[kept]] * gate[kept, None], accumulate=True)
            loss = loss + F.cross_entropy(head(out), y, reduction="sum") / 20
            share, probs_sum = share + chosen.sum(0).float(), probs_sum + probs.sum(0)
        if n > 1:
            dist.all_reduce(share)
            probs_sum = dnf.all_reduce(probs_sum)
        balance = experts * (share / 20 * probs_sum / 20).sum()
        opt.zero_grad()
        (loss + 0.1 * balance / n).backward()
        average([*router.parameters(), *head.parameters()], n, "sum")
        opt.step()
    return {**state(router, "router."), **state(head, "head."), "w1": w1.detach(), "w2": w2.detach()}


# --- shards: each layer's weights are gathered for its forward, and again for its backward ------------------

class Sharded(nn.Module):
    """A module of which a rank keeps a part of the flat weights, and no other but while it is called."""
    def __init__(self, inner, rank, n):
        super().__init__()
        self.n, self.meta = n, [(m, k, p.shape) for m in inner.modules() for k, p in m._parameters.items()]
        flat = torch.cat([getattr(m, k).detach().flatten() for m, k, _ in self.meta])
        self.shard = nn.Parameter(mine(rank, n, F.pad(flat, (0, len(flat) % 2))).clone())
        for m, k, _ in self.meta:
            delattr(m, k)
        self.inner = [inner]   # not a part of this module: it has no weights

    def run(self, x, shard):
        flat, at = torch.cat(dnf.all_gather(shard)) if self.n > 1 else shard, 0
        for m, k, shape in self.meta:
            setattr(m, k, flat[at:at + shape.numel()].view(shape))
            at += shape.numel()
        x = self.inner[0](x)
        for m, k, _ in self.meta:
            delattr(m, k)
        return x

    def forward(self, x):
        return checkpoint(self.run, x, self.shard)


def train_shards(rank, seed, n=2):
    torch.manual_seed(seed)
    parts = [nn.Sequential(nn.Linear(D, 12), nn.ReLU()), nn.Sequential(nn.LayerNorm(12), nn.Linear(12, 5)),
             nn.Linear(5, 3)]
    model = nn.Sequential(*(Sharded(p, rank, n) for p in parts))
    opt = torch.optim.AdamW(model.parameters(), lr=0.02, eps=1e-3)
    for s in range(3):
        x, y = mine(rank, n, draw(seed + s, 8, D), choose(seed + s + 9, 3, 8))
        opt.zero_grad()
        (F.cross_entropy(model(x), y) / n).backward()   # what is scattered back is a sum
        square = sum(p.grad.square().sum() for p in model.parameters())
        if n > 1:
            dist.all_reduce(square)
        for p in model.parameters():
            p.grad *= (0.3 / (square.sqrt() + 1e-6)).clamp(max=1)
        opt.step()
    return state(model)


# --- tables: each rank has some embeddings for all rows, and the dense part for some ------------------------

def train_tables(rank, seed, n=2):
    torch.manual_seed(seed)
    tables = nn.ModuleList([nn.EmbeddingBag(15, 4, mode="sum") for _ in range(4)])
    own = tables[2 * rank:2 * rank + 2] if n > 1 else tables
    over = ddp(nn.Sequential(nn.Linear(D + 16, 8), nn.ReLU(), nn.Linear(8, 1)), n)
    opt = torch.optim.Adagrad([*own.parameters(), *over.parameters()], lr=0.05, eps=1e-2)
    if n > 1:
        # DDP has a mean of the ranks' losses, and these the sum.
        for p in own.parameters():
            p.register_hook(lambda g: g / n)
    for s in range(2):
        accrecord.step(s)
        x, words, y = draw(seed + s, 8, D), choose(seed + s + 9, 15, 4, 8, 3), choose(seed + s + 19, 2, 8).float()
        x, y = mine(rank, n, x, y)
        words = mine(rank, n, words)   # of its tables, all rows
        looked = torch.stack([t(w) for t, w in zip(own, words)], 1)
        looked = swap(looked, n, 0, 1).flatten(1)
        loss = F.binary_cross_entropy_with_logits(over(torch.cat([x, looked], 1)).squeeze(1), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    first = 2 * rank if n > 1 else 0
    return {**{f"table{first + i}": t.weight.detach() for i, t in enumerate(own)}, **state(over)}


# --- vertical: ranks have features of the same people; rank 0 has the labels and what is above --------------

def train_vertical(rank, seed, n=3):
    torch.manual_seed(seed)
    bottoms = [nn.Sequential(nn.Linear(4, 5), nn.Tanh()) for _ in range(3)]
    top = nn.Linear(5, 2)
    own = bottoms[rank:rank + 1] if n > 1 else bottoms
    params = [p for m in own for p in m.parameters()] + (list(top.parameters()) if rank == 0 else [])
    opt = torch.optim.SGD(params, lr=0.3, momentum=0.9)
    for s in range(3):
        accrecord.step(s)
        x, y = draw(seed + s, 6, 12).chunk(3, 1), choose(seed + s + 9, 2, 6)
        out = [m(x[rank + i]) for i, m in enumerate(own)]
        opt.zero_grad()
        if n > 1:
            out = dnf.gather(out[0])
        # The greatest of them: gradients of torch.cat(out, 1) are not contiguous, as gloo's scatter wants them.
        # What others have of it is nothing, but their way back begins there.
        out = torch.stack(out).amax(0)
        (F.cross_entropy(top(out), y) if rank == 0 else 0 * out.sum()).backward()
        opt.step()
    got = {k: v for i, m in enumerate(own) for k, v in state(m, f"bottom{rank + i}.").items()}
    return {**got, **(state(top, "top.") if rank == 0 else {})}


# --- stages: a pipeline of two in two copies, all forward and then all back (GPipe) --------------------------

def stage_of(seed, stages, last):
    torch.manual_seed(seed)
    parts = [nn.Sequential(nn.Linear(D, D), nn.LayerNorm(D), nn.SiLU()) for _ in range(stages - 1)]
    return [*parts, nn.Linear(D, last)]


def train_stages(rank, seed, n=4):
    parts = stage_of(seed, 2, 3)
    if n == 1:
        model = nn.Sequential(*parts)
        opt = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
        for s in range(2):
            opt.zero_grad()
            F.cross_entropy(model(draw(seed + s, 12, D)), choose(seed + s + 9, 3, 12)).backward()
            opt.step()
        return state(model)
    stage, replica = rank // 2, rank % 2
    across = [dist.new_group(r) for r in ([0, 1], [2, 3])][stage]
    model = parts[stage]
    opt = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    for s in range(2):
        accrecord.step(s)
        x, y = mine(replica, 2, draw(seed + s, 12, D), choose(seed + s + 9, 3, 12))
        opt.zero_grad()
        ins, outs = [], []
        for xs, ys in zip(x.chunk(3), y.chunk(3)):
            if stage:
                xs = torch.empty(2, D)
                dist.recv(xs, replica)
                xs.requires_grad_(True)
            out = model(xs)
            if stage:
                out = F.cross_entropy(out, ys) / 3
            else:
                dist.send(out.detach(), replica + 2)
            ins.append(xs)
            outs.append(out)
        for xs, out in zip(ins, outs):
            if stage:
                out.backward()
                dist.send(xs.grad, replica)
            else:
                g = torch.empty_like(out)
                dist.recv(g, replica + 2)
                out.backward(g)
        for p in model.parameters():
            dist.all_reduce(p.grad, group=across)
            p.grad /= 2
        opt.step()
    return {f"{stage}.{k}": v for k, v in state(model).items()}


# --- onef1b: three stages, of which each goes back as soon as it can ----------------------------------------

def train_onef1b(rank, seed, n=3, micro=4):
    parts = stage_of(seed, 3, 2)
    if n == 1:
        model = nn.Sequential(*parts)
        opt = torch.optim.Adam(model.parameters(), lr=0.01, eps=1e-3)
        for s in range(2):
            opt.zero_grad()
            F.mse_loss(model(draw(seed + s, 8, D)), draw(seed + s + 9, 8, 2)).backward()
            opt.step()
        return state(model)
    model, waiting = parts[rank], []
    opt = torch.optim.Adam(model.parameters(), lr=0.01, eps=1e-3)
    for s in range(2):
        accrecord.step(s)
        x, y = draw(seed + s, 8, D).chunk(micro), draw(seed + s + 9, 8, 2).chunk(micro)
        sends = []

        def forward(m):
            h = x[m]
            if rank:
                h = torch.empty(2, D)
                dist.recv(h, rank - 1)
                h.requires_grad_(True)
            out = model(h)
            if rank == n - 1:
                out = F.mse_loss(out, y[m]) / micro
            else:
                sends.append(dist.isend(out.detach(), rank + 1))
            waiting.append((h, out))

        def backward():
            h, out = waiting.pop(0)
            g = None
            if rank < n - 1:
                g = torch.empty_like(out)
                dist.recv(g, rank + 1)
            out.backward(g)
            if rank:
                sends.append(dist.isend(h.grad, rank - 1))
        opt.zero_grad()
        warm = n - 1 - rank
        for m in range(micro):
            forward(m)
            if m >= warm:
                backward()
        for _ in range(warm):
            backward()
        for work in sends:
            work.wait()
        opt.step()
    return {f"{rank}.{k}": v for k, v in state(model).items()}


# --- loops: two ranks with two stages each (interleaved), the first and last with the same embedding ---------

def train_loops(rank, seed, n=2, micro=2, words=10):
    torch.manual_seed(seed)
    emb = nn.Parameter(torch.randn(words, D) * 0.3)
    mid = nn.ModuleList([nn.Sequential(nn.Linear(D, D), nn.Tanh()) for _ in range(4)])
    own = {c: mid[c] for c in range(4) if n == 1 or c % 2 == rank}
    opt = torch.optim.SGD([emb, *(p for m in own.values() for p in m.parameters())], lr=0.3)
    for s in range(2):
        accrecord.step(s)
        t = choose(seed + s, words, 4, 3)
        parts, kept, sends = t.chunk(micro), {}, []
        opt.zero_grad()

        def forward(m, c):
            if c == 0:
                h = F.embedding(parts[m][:, :-1], emb)
            elif n > 1:
                h = torch.empty(2, 2, D)
                dist.recv(h, 1 - rank)
                h.requires_grad_(True)
            else:
                h = kept[m, c - 1][1]
            out = own[c](h)
            if c == 3:
                out = F.cross_entropy((out @ emb.t()).flatten(0, 1), parts[m][:, 1:].flatten()) / micro
            elif n > 1:
                sends.append(dist.isend(out.detach().clone(), 1 - rank))
            kept[m, c] = h, out

        def backward(m, c):
            h, out = kept.pop((m, c))
            g = None
            if c < 3:
                g = torch.empty_like(out)
                dist.recv(g, 1 - rank)
            out.backward(g)
            if c:
                sends.append(dist.isend(h.grad, 1 - rank))
        if n == 1:
            for m in range(micro):
                for c in range(4):
                    forward(m, c)
                kept[m, 3][1].backward()
        else:
            order = ["F00 F10 F02 F12 B02 B12 B00 B10", "F01 F11 F03 B03 F13 B13 B01 B11"][rank]
            for what, m, c in order.split():
                (forward if what == "F" else backward)(int(m), int(c))
            for work in sends:
                work.wait()
            dist.all_reduce(emb.grad)   # of its two uses
        opt.step()
    return {"emb": emb.detach(), **{k: v for c, m in own.items() for k, v in state(m, f"{c}.").items()}}


# --- server: rank 0 has the optimizer, the others the data --------------------------------------------------

def train_server(rank, seed, n=3):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(D, 8), nn.Hardtanh(), nn.Linear(8, 3))
    opt = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9) if rank == 0 else None
    for s in range(3):
        accrecord.step(s)   # a worker has no optimizer by which it could be told
        if n > 1:
            for p in model.parameters():
                dist.broadcast(p.data, 0)
        model.zero_grad()
        if rank or n == 1:
            x, y = draw(seed + s, 8, D), choose(seed + s + 9, 3, 8)
            x, y = mine(rank - 1, n - 1, x, y) if n > 1 else (x, y)
            (F.cross_entropy(model(x), y, reduction="sum") / 8).backward()
        for p in model.parameters():
            if rank == 0 and n > 1:
                p.grad = torch.zeros_like(p)
            if n > 1:
                dist.reduce(p.grad, 0)
        if rank == 0:
            opt.step()
    # The workers' weights are those of the last broadcast.
    return state(model) if rank == 0 else {}


# --- teacher: rank 1 has a frozen one and tells what it thinks of rank 0's batch ------------------------------

def train_teacher(rank, seed, n=2):
    torch.manual_seed(seed)
    teacher = nn.Sequential(nn.Linear(D, 16), nn.ReLU(), nn.Linear(16, 5)).requires_grad_(False)
    student = nn.Linear(D, 5)
    opt = torch.optim.SGD(student.parameters(), lr=0.5)
    for s in range(2):
        accrecord.step(s)   # a teacher has no optimizer by which it could be told
        x, told = draw(seed + s, 6, D), torch.empty(6, 5)
        if rank == 1 or n == 1:
            told = teacher(x) / 2
        if n > 1:
            dist.broadcast(told, 1)
        if rank == 0:
            opt.zero_grad()
            loss = F.kl_div((student(x) / 2).log_softmax(-1), told.softmax(-1), reduction="batchmean") * 4
            loss.backward()
            opt.step()
    return state(student) if rank == 0 else {}


PROGRAMS = {
    "summa": (4, train_summa), "columns": (2, train_columns), "ulysses": (2, train_ulysses),
    "ringattn": (3, train_ringattn), "halo": (3, train_halo), "faces": (2, train_faces),
    "capacity": (2, train_capacity), "shards": (2, train_shards), "tables": (2, train_tables),
    "vertical": (3, train_vertical), "stages": (4, train_stages), "onef1b": (3, train_onef1b),
    "loops": (2, train_loops), "server": (3, train_server), "teacher": (2, train_teacher)}
WHOLE = {name: one(train) for name, (_, train) in PROGRAMS.items()}
WHOLE["summa"] = whole_summa
PROGRAMS = {name: (ranks, right(train)) for name, (ranks, train) in PROGRAMS.items()}
FAULTS = {}
