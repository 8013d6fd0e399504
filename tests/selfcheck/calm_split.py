"""Programs of calm.py whose ranks hold parts of a model, or of a sequence. As calm_data.py."""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

from calm_data import batch, kept, mean_grads, mlp
from scripts_frame import right


class Copy(torch.autograd.Function):
    """Into a part that is split: what comes back is summed."""

    @staticmethod
    def forward(ctx, x, group=None):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        g = g.clone()
        dist.all_reduce(g, group=ctx.group)
        return g, None


class Reduce(torch.autograd.Function):
    """Out of a part that is split."""

    @staticmethod
    def forward(ctx, x, group=None):
        x = x.clone()
        dist.all_reduce(x, group=group)
        return x

    @staticmethod
    def backward(ctx, g):
        return g, None


class Sum(torch.autograd.Function):
    """A sum that every rank uses for a loss of its own."""

    @staticmethod
    def forward(ctx, x):
        x = x.clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, g):
        g = g.clone()
        dist.all_reduce(g)
        return g


class Gather(torch.autograd.Function):
    """The ranks' parts along a dimension; of their gradient, the sum where the losses are the ranks' own."""

    @staticmethod
    def forward(ctx, x, dim, own):
        ctx.dim, ctx.own = dim, own
        parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, x.contiguous())
        return torch.cat(parts, dim)

    @staticmethod
    def backward(ctx, g):
        if ctx.own:
            g = g.clone()
            dist.all_reduce(g)
        return g.chunk(dist.get_world_size(), ctx.dim)[dist.get_rank()].contiguous(), None, None


class Swap(torch.autograd.Function):
    """all_to_all of equal parts."""

    @staticmethod
    def forward(ctx, x):
        out = torch.empty_like(x)
        dist.all_to_all_single(out, x.contiguous())
        return out

    @staticmethod
    def backward(ctx, g):
        out = torch.empty_like(g)
        dist.all_to_all_single(out, g.contiguous())
        return out


def draw(seed, *shape, std=0.3):
    return nn.Parameter(std * torch.randn(*shape, generator=torch.Generator().manual_seed(seed)))


def part(p, rank, ranks, dim=0):
    return nn.Parameter(p.detach().chunk(ranks, dim)[rank].clone())


def words(seed, number, n, t, size):
    return (batch(seed, number, n, t)[0] * 50).long().remainder(size)


class Language(nn.Module):
    """An embedding that is the head as well, with a bias that begins as zeros; split by words."""

    def __init__(self, seed, rank=0, ranks=1):
        super().__init__()
        self.first, self.ranks = rank * 12 // ranks, ranks
        self.embed = part(draw(seed, 12, 8), rank, ranks)
        self.norm = nn.LayerNorm(8)
        self.bias = nn.Parameter(torch.zeros(12 // ranks))

    def forward(self, ids):
        if self.ranks == 1:
            h = self.norm(F.embedding(ids[:, :-1], self.embed))
            return F.cross_entropy((h @ self.embed.t() + self.bias).flatten(0, 1), ids[:, 1:].flatten())
        x, y = ids[:, :-1] - self.first, ids[:, 1:] - self.first
        inside = (x >= 0) & (x < len(self.embed))
        h = F.embedding(x.masked_fill(~inside, 0), self.embed).masked_fill(~inside[..., None], 0.0)
        logits = Copy.apply(self.norm(Reduce.apply(h))) @ self.embed.t() + self.bias
        top = logits.detach().max(-1).values
        dist.all_reduce(top, dist.ReduceOp.MAX)
        logits = logits - top[..., None]
        inside = (y >= 0) & (y < len(self.embed))
        target = logits.gather(-1, y.masked_fill(~inside, 0)[..., None])[..., 0].masked_fill(~inside, 0.0)
        return (Reduce.apply(logits.exp().sum(-1)).log() - Reduce.apply(target)).mean()


# Vocabulary-parallel embedding and loss, as Megatron-LM's.
def vocab(rank, seed, ranks=2):
    model = Language(seed, rank, ranks)
    opt = torch.optim.SGD(model.parameters(), lr=0.3)
    for step in range(2):
        opt.zero_grad()
        model(words(seed, step, 4, 6, 12)).backward()
        opt.step()
    return kept(model, **{k + ".grad": p.grad for k, p in model.named_parameters()})


def drop(x, seed, p=0.2):
    g = torch.Generator().manual_seed(seed)
    return x * (torch.rand(x.shape, generator=g) > p) / (1 - p)


class Block(nn.Module):
    """Attention with a norm to each head, behind an embedding split by columns, and an MLP, split."""

    def __init__(self, seed, rank=0, ranks=1):
        super().__init__()
        self.rank, self.ranks = rank, ranks
        self.embed = part(draw(seed, 12, 8), rank, ranks, 1)
        self.qkv = part(draw(seed + 1, 4, 6, 8), rank, ranks)
        self.scale = nn.Parameter(torch.ones(4 // ranks, 1, 2))
        self.out = part(draw(seed + 2, 8, 8), rank, ranks, 1)
        self.up = part(draw(seed + 3, 16, 8), rank, ranks)
        self.up_bias = nn.Parameter(torch.zeros(16 // ranks))
        self.down = part(draw(seed + 4, 8, 16), rank, ranks, 1)
        self.down_bias = nn.Parameter(torch.zeros(8))

    def forward(self, ids, seed):
        one = self.ranks == 1
        enter, leave = (lambda x: x, lambda x: x) if one else (Copy.apply, Reduce.apply)
        x = F.embedding(ids, self.embed)
        x = drop(x if one else Gather.apply(x, -1, False), seed)     # the same on all
        q, k, v = torch.einsum("btd,hed->bhte", enter(x), self.qkv).chunk(3, -1)
        q = F.normalize(q, dim=-1) * self.scale
        a = (q @ F.normalize(k, dim=-1).transpose(-1, -2)).softmax(-1)
        # Inside the split part each rank drops others.
        a = torch.cat([drop(h, seed + 7 + i) for i, h in enumerate(a.chunk(2, 1))], 1) if one else \
            drop(a, seed + 7 + self.rank)
        x = x + leave((a @ v).transpose(1, 2).flatten(2) @ self.out.t())
        h = leave(F.gelu(F.linear(enter(x), self.up, self.up_bias)) @ self.down.t())
        return x + drop(h + self.down_bias, seed + 11)


# Dropout whose seed ranks share where activations are whole and not where they are split.
def tensor(rank, seed, ranks=2):
    model = Block(seed, rank, ranks)
    opt = torch.optim.SGD(model.parameters(), lr=0.3)
    for step in range(2):
        opt.zero_grad()
        y = batch(seed, 50 + step, 4, 5 * 8)[0].view(4, 5, 8)
        F.mse_loss(model(words(seed, step, 4, 5, 12), 100 * seed + 20 * step), y).backward()
        opt.step()
    return kept(model, **{k + ".grad": p.grad for k, p in model.named_parameters()})


class Half(nn.Module):
    def __init__(self, seed, rank=0, ranks=1):
        super().__init__()
        self.up, self.bias = part(draw(seed, 16, 8), rank, ranks), nn.Parameter(torch.zeros(16 // ranks))
        self.down, self.last = part(draw(seed + 1, 4, 16), rank, ranks, 1), nn.Parameter(torch.zeros(4))

    def forward(self, x, group=None):
        if group is None:
            return F.linear(torch.tanh(F.linear(x, self.up, self.bias)), self.down, self.last)
        h = torch.tanh(F.linear(Copy.apply(x, group), self.up, self.bias))
        return Reduce.apply(h @ self.down.t(), group) + self.last


# Two replicas of two parts each; noise is a replica's, and the norm that clips counts what is whole once.
def grid(rank, seed):
    lines = [dist.new_group(r) for r in ([0, 1], [2, 3])]
    across = [dist.new_group(r) for r in ([0, 2], [1, 3])]
    split, same = lines[rank // 2], across[rank % 2]
    model = Half(seed, rank % 2, 2)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-2, eps=1e-3)
    for step in range(2):
        x, y = batch(seed, 2 * step + rank // 2)
        opt.zero_grad()
        F.mse_loss(model(drop(x, 10 * seed + rank // 2), split), y).backward()
        for p in model.parameters():
            dist.all_reduce(p.grad, group=same)
            p.grad /= 2
        norm = sum(p.grad.pow(2).sum() for p in model.parameters() if p is not model.last)
        dist.all_reduce(norm, group=split)
        norm = (norm + model.last.grad.pow(2).sum()).sqrt()
        for p in model.parameters():
            p.grad *= (0.2 / norm).clamp(max=1)
        opt.step()
    return kept(model, norm=norm)


def grid_whole(seed):
    model = Half(seed)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-2, eps=1e-3)
    for step in range(2):
        x, y = zip(*(batch(seed, 2 * step + r) for r in range(2)))
        opt.zero_grad()
        x = torch.cat([drop(v, 10 * seed + r) for r, v in enumerate(x)])
        F.mse_loss(model(x), torch.cat(y)).backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.2)
        opt.step()
    return kept(model, norm=norm)


# DLRM (arXiv 1906.00091): a table to each rank, of other sizes, and an optimizer; a replicated MLP.
def dlrm(rank, seed):
    rows = draw(seed + rank, 10 - 4 * rank, 8).data
    table = nn.EmbeddingBag.from_pretrained(rows, freeze=False, mode="sum")
    top = mlp(seed, 16, 16, 1)
    rows, dense = torch.optim.Adagrad(table.parameters(), lr=0.1), torch.optim.SGD(top.parameters(), lr=0.1)
    for step in range(2):
        ids = torch.cat([words(seed, 10 * step + r, 4, 3, 10 - 4 * rank) for r in range(2)])
        bags = Swap.apply(table(ids)).chunk(2)
        rows.zero_grad()
        dense.zero_grad()
        y = batch(seed, 2 * step + rank, 4, 8, 1)[1]
        F.mse_loss(top(torch.cat(bags, 1)), y).backward()
        mean_grads(top)
        table.weight.grad /= 2      # all samples have come, with a mean over half of them
        rows.step()
        dense.step()
    return kept(top, table=table.weight)


def dlrm_whole(seed):
    tables, top = [draw(seed + r, 10 - 4 * r, 8) for r in range(2)], mlp(seed, 16, 16, 1)
    rows, dense = torch.optim.Adagrad(tables, lr=0.1), torch.optim.SGD(top.parameters(), lr=0.1)
    for step in range(2):
        bags = [torch.cat([words(seed, 10 * step + r, 4, 3, len(t)) for r in range(2)]) for t in tables]
        x = torch.cat([t[i].sum(1) for t, i in zip(tables, bags)], 1)
        y = torch.cat([batch(seed, 2 * step + r, 4, 8, 1)[1] for r in range(2)])
        rows.zero_grad()
        dense.zero_grad()
        F.mse_loss(top(x), y).backward()
        rows.step()
        dense.step()
    return [kept(top, table=t) for t in tables]


def turn(tensors, step=1):
    """Each goes to the next rank of a ring."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    got = []
    for t in tensors:
        new = torch.empty_like(t)
        for send in (True, False) if rank % 2 == 0 else (False, True):
            if send:
                dist.send(t.contiguous(), (rank + step) % ranks)
            else:
                dist.recv(new, (rank - step) % ranks)
        got.append(new)
    return got


class Ring(torch.autograd.Function):
    """Ring attention (arXiv 2310.01889), causal: a rank passes on keys after its queries unused."""

    @staticmethod
    def scores(q, k, own):
        s = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        return s.masked_fill(torch.ones_like(s[0], dtype=torch.bool).triu(1), float("-inf")) if own else s

    @staticmethod
    def forward(ctx, q, k, v):
        rank, ranks = dist.get_rank(), dist.get_world_size()
        out, total, kv = None, None, [k, v]
        for hop in range(ranks):
            if hop <= rank:
                s = Ring.scores(q, kv[0], hop == 0)
                here, o = s.logsumexp(-1, keepdim=True), s.softmax(-1) @ kv[1]
                if out is None:
                    out, total = o, here
                else:
                    new = torch.logaddexp(total, here)
                    out, total = out * (total - new).exp() + o * (here - new).exp(), new
            if hop < ranks - 1:
                kv = turn(kv)
        ctx.save_for_backward(q, k, v, out, total)
        return out

    @staticmethod
    def backward(ctx, g):
        q, k, v, out, total = ctx.saved_tensors
        rank, ranks = dist.get_rank(), dist.get_world_size()
        dq, moving = torch.zeros_like(q), [k, v, torch.zeros_like(k), torch.zeros_like(v)]
        for hop in range(ranks):
            if hop <= rank:
                p = (Ring.scores(q, moving[0], hop == 0) - total).exp()
                ds = p * (g @ moving[1].transpose(-1, -2) - (g * out).sum(-1, keepdim=True))
                ds /= q.shape[-1] ** 0.5
                dq += ds @ moving[0]
                moving[2] += ds.transpose(-1, -2) @ q
                moving[3] += p.transpose(-1, -2) @ g
            moving = turn(moving)
        return dq, moving[2], moving[3]


def ring(rank, seed, ranks=3):
    torch.manual_seed(seed)
    model = nn.ModuleDict({"norm": nn.LayerNorm(8), "qkv": nn.Linear(8, 24), "out": nn.Linear(8, 8)})
    opt = torch.optim.SGD(model.parameters(), lr=0.3)
    for step in range(2):
        x, y = (t.view(2, 12, 8).chunk(ranks, 1)[rank] for t in batch(seed, step, 2, 96, 96))
        q, k, v = model["qkv"](model["norm"](x)).chunk(3, -1)
        if ranks == 1:
            a = Ring.scores(q, k, True).softmax(-1) @ v
        else:
            a = Ring.apply(q, k, v)
        opt.zero_grad()
        ((x + model["out"](a) - y) ** 2).sum().div(2 * 96).backward()
        if ranks > 1:
            for p in model.parameters():
                dist.all_reduce(p.grad)
        opt.step()
    return kept(model, **{k + ".grad": p.grad for k, p in model.named_parameters()})


# Expert choice (arXiv 2202.09368): an expert takes the half of each rank's tokens that like it best.
def choice(rank, seed):
    router, expert = nn.Linear(8, 2, bias=False), mlp(seed + rank, 8, 16, 8)
    router.weight = draw(seed, 2, 8)
    outer = torch.optim.SGD(router.parameters(), lr=0.5)
    inner = torch.optim.AdamW(expert.parameters(), lr=1e-2, eps=1e-3)
    for step in range(2):
        x, y = batch(seed, 2 * step + rank, 6, 8, 8)
        gate, at = router(x).softmax(-1).t().topk(3)
        z = Swap.apply(expert(Swap.apply(x[at.flatten()])))
        outer.zero_grad()
        inner.zero_grad()
        F.mse_loss(x.index_add(0, at.flatten(), z * gate.flatten()[:, None]), y).backward()
        mean_grads(router)
        for p in expert.parameters():
            p.grad /= 2
        outer.step()
        inner.step()
    return kept(expert, router=router.weight)


def choice_whole(seed):
    router, experts = draw(seed, 2, 8), [mlp(seed + r, 8, 16, 8) for r in range(2)]
    outer = torch.optim.SGD([router], lr=0.5)
    inner = torch.optim.AdamW([p for e in experts for p in e.parameters()], lr=1e-2, eps=1e-3)
    for step in range(2):
        loss = 0
        for r in range(2):
            x, y = batch(seed, 2 * step + r, 6, 8, 8)
            gates, z = (x @ router.t()).softmax(-1), x
            for e, expert in enumerate(experts):
                limit = gates[:, e].sort(descending=True).values[2]
                z = z + torch.where(gates[:, e:e + 1] >= limit, gates[:, e:e + 1] * expert(x), torch.zeros(1))
            loss = loss + F.mse_loss(z, y) / 2
        outer.zero_grad()
        inner.zero_grad()
        loss.backward()
        outer.step()
        inner.step()
    return [kept(e, router=router) for e in experts]


def routed(ids, capacity=4):
    """By hash: of each rank's tokens an expert takes the first few; the rest goes past."""
    return [(ids % 2 == e).nonzero()[:, 0][:capacity] for e in range(2)]


# Hash layers (arXiv 2106.04426): no router learns, the capacity is a rank's, what has no place is dropped.
def hashed(rank, seed):
    embed = nn.Embedding.from_pretrained(draw(seed, 12, 8).data, freeze=False)
    expert = mlp(seed + rank, 8, 16, 8)
    opt = torch.optim.SGD([{"params": embed.parameters()},
                           {"params": expert.parameters(), "lr": 0.5}], lr=0.2)
    for step in range(2):
        ids, y = words(seed, 2 * step + rank, 1, 10, 12)[0], batch(seed, 2 * step + rank, 10, 8, 8)[1]
        x, places = embed(ids), routed(ids)
        rows = torch.cat([F.pad(x[at], (0, 0, 0, 4 - len(at))) for at in places])
        back = Swap.apply(expert(Swap.apply(rows))).chunk(2)
        out = x
        for at, z in zip(places, back):
            out = out.index_add(0, at, z[:len(at)])
        opt.zero_grad()
        F.mse_loss(out, y).backward()
        mean_grads(embed)
        for p in expert.parameters():
            p.grad /= 2
        opt.step()
    return kept(expert, embed=embed.weight)


def hashed_whole(seed):
    embed, experts = draw(seed, 12, 8), [mlp(seed + r, 8, 16, 8) for r in range(2)]
    opt = torch.optim.SGD([{"params": [embed]}, {"params": [p for e in experts for p in e.parameters()],
                                                 "lr": 0.5}], lr=0.2)
    for step in range(2):
        loss = 0
        for r in range(2):
            ids, y = words(seed, 2 * step + r, 1, 10, 12)[0], batch(seed, 2 * step + r, 10, 8, 8)[1]
            full, rows = [0, 0], []
            for i in ids.tolist():
                taken = full[i % 2] < 4
                full[i % 2] += taken
                rows.append(embed[i] + experts[i % 2](embed[i]) if taken else embed[i])
            loss = loss + F.mse_loss(torch.stack(rows), y) / 2
        opt.zero_grad()
        loss.backward()
        opt.step()
    return [kept(e, embed=embed) for e in experts]


class Norm(nn.Module):
    """BatchNorm over the batches of all ranks, written by hand."""

    def __init__(self, dim):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(dim)), nn.Parameter(torch.zeros(dim))
        self.register_buffer("running_mean", torch.zeros(dim))
        self.register_buffer("running_var", torch.ones(dim))

    def forward(self, x):
        n = torch.tensor([float(len(x))])
        total = Sum.apply(torch.cat([x.sum(0), (x * x).sum(0), n]))
        n = total[-1].item()
        mean, square = (total[:-1] / n).chunk(2)
        var = square - mean * mean
        with torch.no_grad():
            self.running_mean.lerp_(mean, 0.1)
            self.running_var.lerp_(var * n / (n - 1), 0.1)
        return (x - mean) * (var + 1e-5).rsqrt() * self.weight + self.bias


# Batches of other sizes under it: gradients are of a loss over all samples, and summed.
def syncbn(rank, seed):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(8, 16), Norm(16), nn.Tanh(), nn.Linear(16, 4))
    opt = torch.optim.SGD(model.parameters(), lr=0.3)
    for step in range(2):
        x, y = batch(seed, 2 * step + rank, 3 + 2 * rank)
        opt.zero_grad()
        ((model(x) - y) ** 2).sum().div(8 * 4).backward()
        for p in model.parameters():
            dist.all_reduce(p.grad)
        opt.step()
    return kept(model)


def syncbn_whole(seed):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Tanh(), nn.Linear(16, 4))
    opt = torch.optim.SGD(model.parameters(), lr=0.3)
    for step in range(2):
        x, y = (torch.cat(t) for t in zip(*(batch(seed, 2 * step + r, 3 + 2 * r) for r in range(2))))
        opt.zero_grad()
        F.mse_loss(model(x), y).backward()
        opt.step()
    return kept(model)


# A contrastive loss as OpenCLIP's with local_loss and gather_with_grad.
def clip(rank, seed, ranks=2):
    image, text = mlp(seed, 8, 16, 8), mlp(seed + 1, 4, 16, 8)
    scale = nn.Parameter(torch.tensor(1.5))
    model = nn.ModuleList([image, text])
    model.register_parameter("scale", scale)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(2):
        a, b = (t.chunk(ranks)[rank] for t in batch(seed, step, 8))
        a, b = F.normalize(image(a), dim=1), F.normalize(text(b), dim=1)
        every = (a, b) if ranks == 1 else (Gather.apply(a, 0, True), Gather.apply(b, 0, True))
        target = torch.arange(len(a)) + rank * len(a)
        loss = F.cross_entropy(scale.exp() * a @ every[1].t(), target)
        loss = (loss + F.cross_entropy(scale.exp() * b @ every[0].t(), target)) / 2
        opt.zero_grad()
        loss.backward()
        if ranks > 1:
            mean_grads(model)
        opt.step()
    return kept(model, **{k + ".grad": p.grad for k, p in model.named_parameters()})


# Queries of a rank attend to keys that all ranks gathered, behind a mask of its own; of these only its own
# have a gradient.
def retrieve(rank, seed, ranks=2):
    torch.manual_seed(seed)
    model = nn.ModuleDict({"q": nn.Linear(8, 8), "kv": nn.Linear(8, 16), "out": nn.Linear(8, 4)})
    opt = torch.optim.SGD([{"params": model["kv"].parameters(), "lr": 0.1},
                           {"params": [*model["q"].parameters(), *model["out"].parameters()]}], lr=0.5)
    for step in range(2):
        data = [batch(seed, 2 * step + r) for r in range(2)]
        own = [model["kv"](x) for x, _ in data] if ranks == 1 else [model["kv"](data[rank][0])]
        if ranks == 1:
            other = [o.detach() for o in own]
        else:
            other = [torch.empty_like(own[0]) for _ in range(2)]
            dist.all_gather(other, own[0].detach())
        loss = 0
        for r, mine in zip(range(2) if ranks == 1 else [rank], own):
            rows = list(other)
            rows[r] = mine
            k, v = torch.cat(rows).chunk(2, 1)
            hidden = torch.tensor([i % (r + 2) == 1 for i in range(8)])
            a = (model["q"](data[r][0]) @ k.t()).masked_fill(hidden, float("-inf")).softmax(-1)
            loss = loss + F.mse_loss(model["out"](a @ v), data[r][1]) / len(own)
        opt.zero_grad()
        loss.backward()
        if ranks > 1:
            mean_grads(model)
        opt.step()
    return kept(model, **{k + ".grad": p.grad for k, p in model.named_parameters()})


def whole_of(program):
    """The same program for one process, without exchange."""
    return lambda seed: program(0, seed, ranks=1)


NAMES = {"vocab": 2, "tensor": 2, "grid": 4, "dlrm": 2, "ring": 3, "choice": 2, "hashed": 2, "syncbn": 2,
         "clip": 2, "retrieve": 2}
PROGRAMS = {n: (r, right(globals()[n])) for n, r in NAMES.items()}
WHOLE = {n: globals().get(n + "_whole") or whole_of(globals()[n]) for n in NAMES}
TOO = {}
