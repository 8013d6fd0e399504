"""Programs of calm.py whose ranks hold replicas, or what looks like replicas, and differ as they should.

A program gives what its rank ends with; WHOLE has, of the same name, what one process computes that stands
for all ranks: a dict that holds for each of them, or a list with one for each rank.
"""
import copy

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel as DDP

import accrecord
from scripts_frame import right


def mlp(seed, *dims):
    torch.manual_seed(seed)
    layers = []
    for a, b in zip(dims, dims[1:]):
        layers += [nn.Linear(a, b), nn.Tanh()]
    return nn.Sequential(*layers[:-1])


def batch(seed, number, n=4, dim=8, out=4):
    g = torch.Generator().manual_seed(1000 * seed + number)
    return torch.randn(n, dim, generator=g), torch.randn(n, out, generator=g)


def kept(model, **more):
    got = {k: v.detach().clone() for k, v in model.state_dict().items() if v.is_floating_point()}
    return {**got, **{k: torch.as_tensor(v).detach().clone() for k, v in more.items()}}


def fit(model, opt, x, y):
    """A step of one process."""
    opt.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    opt.step()
    return loss.detach()


def mean_(tensors, group=None):
    """Each tensor becomes the mean of the ranks'."""
    for t in tensors:
        dist.all_reduce(t, group=group)
        t /= dist.get_world_size(group)


def mean_grads(model):
    mean_([p.grad for p in model.parameters() if p.grad is not None])


def put(models, means):
    """Sets the weights of all models of a simulation."""
    with torch.no_grad():
        for m in models:
            for p, v in zip(m.parameters(), means):
                p.copy_(v)


def means(models):
    return [torch.stack([p.detach() for p in ps]).mean(0) for ps in zip(*(m.parameters() for m in models))]


def grads_of(model, x, y):
    return list(torch.autograd.grad(F.mse_loss(model(x), y), list(model.parameters())))


# Local SGD (arXiv 1805.09767): the weights part for a step, and the momentum stays the rank's own.
def localsgd(rank, seed):
    model = mlp(seed, 8, 16, 4)
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(4):
        fit(model, opt, *batch(seed, 3 * step + rank))
        if step % 2:
            with torch.no_grad():
                mean_(model.parameters())
    return kept(model)


def localsgd_whole(seed):
    models = [mlp(seed, 8, 16, 4) for _ in range(3)]
    opts = [torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9) for m in models]
    for step in range(4):
        for r in range(3):
            fit(models[r], opts[r], *batch(seed, 3 * step + r))
        if step % 2:
            put(models, means(models))
    return kept(models[0])


# DiLoCo (arXiv 2311.08105): AdamW inside, Nesterov on the mean of what the weights moved outside.
def diloco(rank, seed):
    model = mlp(seed, 8, 16, 4)
    anchor = copy.deepcopy(model)
    inner = torch.optim.AdamW(model.parameters(), lr=1e-2)
    outer = torch.optim.SGD(anchor.parameters(), lr=0.7, momentum=0.9, nesterov=True)
    for step in range(4):
        fit(model, inner, *batch(seed, 2 * step + rank))
        if step % 2:
            for a, p in zip(anchor.parameters(), model.parameters()):
                a.grad = a.detach() - p.detach()
            mean_grads(anchor)
            outer.step()
            model.load_state_dict(anchor.state_dict())
    return kept(model)


def diloco_whole(seed):
    models = [mlp(seed, 8, 16, 4) for _ in range(2)]
    anchor = mlp(seed, 8, 16, 4)
    opts = [torch.optim.AdamW(m.parameters(), lr=1e-2) for m in models]
    outer = torch.optim.SGD(anchor.parameters(), lr=0.7, momentum=0.9, nesterov=True)
    for step in range(4):
        for r in range(2):
            fit(models[r], opts[r], *batch(seed, 2 * step + r))
        if step % 2:
            for a, v in zip(anchor.parameters(), means(models)):
                a.grad = a.detach() - v
            outer.step()
            put(models, list(anchor.parameters()))
    return kept(anchor)


PAIRS = [[[0, 1], [2, 3]], [[1, 2], [0, 3]]]


# Decentralised SGD on a ring: a rank averages with one neighbour, then the other; the four are never alike.
def gossip(rank, seed):
    groups = [[(pair, dist.new_group(pair)) for pair in pairs] for pairs in PAIRS]
    model = mlp(seed, 8, 16, 4)
    opt = torch.optim.SGD(model.parameters(), lr=0.2)
    for step in range(3):
        fit(model, opt, *batch(seed, 4 * step + rank))
        for pair, group in groups[step % 2]:
            if rank in pair:
                with torch.no_grad():
                    mean_(model.parameters(), group)
    return kept(model)


def gossip_whole(seed):
    models = [mlp(seed, 8, 16, 4) for _ in range(4)]
    opts = [torch.optim.SGD(m.parameters(), lr=0.2) for m in models]
    for step in range(3):
        for r in range(4):
            fit(models[r], opts[r], *batch(seed, 4 * step + r))
        for pair in PAIRS[step % 2]:
            both = [models[r] for r in pair]
            put(both, means(both))
    return [kept(m) for m in models]


# FedNova (arXiv 2007.07481): a client takes as many local steps as it has batches.
def fednova(rank, seed):
    model = mlp(seed, 8, 16, 4)
    for round in range(2):
        start = [p.detach().clone() for p in model.parameters()]
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for i in range(rank + 1):
            fit(model, opt, *batch(seed, 100 * round + 10 * rank + i))
        taken = torch.tensor(float(rank + 1))
        dist.all_reduce(taken)
        with torch.no_grad():
            for p, s in zip(model.parameters(), start):
                # Of a client with n batches in n steps, n / all is its weight and 1 / n the norm.
                move = (p - s) / taken
                dist.all_reduce(move)
                p.copy_(s + 2 * move)
    return kept(model)


def fednova_whole(seed):
    model = mlp(seed, 8, 16, 4)
    for round in range(2):
        moves = [torch.zeros_like(p) for p in model.parameters()]
        for r in range(3):
            local = copy.deepcopy(model)
            opt = torch.optim.SGD(local.parameters(), lr=0.1)
            for i in range(r + 1):
                fit(local, opt, *batch(seed, 100 * round + 10 * r + i))
            for m, p, s in zip(moves, local.parameters(), model.parameters()):
                m += (p - s).detach() / 6
        put([model], [p + 2 * m for p, m in zip(model.parameters(), moves)])
    return kept(model)


def orthogonal(p):
    return torch.linalg.qr(p)[0]


# PowerSGD (arXiv 1905.13727): matrices as products of rank 2; what was left out stays with the rank.
def powersgd(rank, seed, ranks=2):
    model = mlp(seed, 8, 16, 4)
    opt = torch.optim.SGD(model.parameters(), lr=0.2)
    left = {n: torch.zeros_like(p) for n, p in model.named_parameters()}
    q = {n: torch.randn(p.shape[1], 2) for n, p in model.named_parameters() if p.dim() == 2}
    for step in range(3):
        x, y = batch(seed, step, 8)
        if ranks > 1:
            x, y = x.chunk(ranks)[rank], y.chunk(ranks)[rank]
        opt.zero_grad()
        F.mse_loss(model(x), y).backward()
        for n, w in model.named_parameters():
            if n not in q:
                if ranks > 1:
                    mean_([w.grad])
                continue
            m = w.grad + left[n]
            p = m @ q[n]
            if ranks > 1:
                mean_([p])
            p = orthogonal(p)
            q[n] = m.t() @ p
            if ranks > 1:
                mean_([q[n]])
            w.grad = p @ q[n].t()
            left[n] = m - w.grad
        opt.step()
    return kept(model, **{f"left_{n}": v for n, v in left.items()})


def powersgd_whole(seed):
    """As the parts of it are linear, the mean of what is left is what one process leaves."""
    got = powersgd(0, seed, 1)
    return {k: v for k, v in got.items() if not k.startswith("left_")}


def powersgd_too(ranks, seed):
    """The ranks leave what differs, whose mean is what one process leaves."""
    for k, v in powersgd(0, seed, 1).items():
        if k.startswith("left_") and v.dim() == 2:
            assert (ranks[0][k] - ranks[1][k]).norm() > 1e-2, k
            assert torch.allclose((ranks[0][k] + ranks[1][k]) / 2, v, atol=1e-5), k


def biggest(v, k):
    at = v.abs().topk(k).indices
    return v[at], at


# Sparse gradients with error feedback (arXiv 1712.01887): the ranks send other elements.
def topk(rank, seed):
    model = mlp(seed, 8, 16, 4)
    opt = torch.optim.SGD(model.parameters(), lr=0.3)
    left = torch.zeros(sum(p.numel() for p in model.parameters()))
    for step in range(3):
        opt.zero_grad()
        x, y = batch(seed, 3 * step + rank)
        F.mse_loss(model(x), y).backward()
        flat = nn.utils.parameters_to_vector([p.grad for p in model.parameters()]) + left
        values, at = biggest(flat, 40)
        left = flat.clone()
        left[at] = 0
        all_values = [torch.zeros_like(values) for _ in range(3)]
        all_at = [torch.zeros_like(at) for _ in range(3)]
        dist.all_gather(all_values, values)
        dist.all_gather(all_at, at)
        total = torch.zeros_like(flat).index_add_(0, torch.cat(all_at), torch.cat(all_values)) / 3
        for p, g in zip(model.parameters(), total.split([p.numel() for p in model.parameters()])):
            p.grad = g.view_as(p).clone()
        opt.step()
    return kept(model, left=left)


def topk_whole(seed):
    model = mlp(seed, 8, 16, 4)
    left = [0] * 3
    for step in range(3):
        total = 0
        for r in range(3):
            g = torch.cat([g.flatten() for g in grads_of(model, *batch(seed, 3 * step + r))]) + left[r]
            sent = torch.where(g.abs() >= g.abs().sort(descending=True).values[39], g, torch.zeros_like(g))
            left[r] = g - sent
            total = total + sent / 3
        flat = nn.utils.parameters_to_vector(model.parameters()).detach() - 0.3 * total
        nn.utils.vector_to_parameters(flat, model.parameters())
    return [kept(model, left=v) for v in left]


def sign(v):
    """One bit for each element, and a scale."""
    return torch.where(v >= 0, 1.0, -1.0) * v.abs().mean()


class OneBit(torch.optim.Optimizer):
    """1-bit Adam (arXiv 2102.02888): after two of Adam, the variance stays and momentum goes as signs."""

    def __init__(self, params):
        super().__init__(params, {"lr": 1e-2})
        self.steps = 0

    @torch.no_grad()
    def step(self):
        for p in self.param_groups[0]["params"]:
            s = self.state[p]
            if not s:
                s.update({k: torch.zeros_like(p) for k in ("m", "v", "left")})
            if self.steps < 2:
                mean_([p.grad])
            s["m"] = 0.9 * s["m"] + 0.1 * p.grad
            if self.steps < 2:
                s["v"] = 0.99 * s["v"] + 0.01 * p.grad ** 2
            else:
                full = s["m"] + s["left"]
                s["m"] = sign(full)
                s["left"] = full - s["m"]
                mean_([s["m"]])
            p -= self.param_groups[0]["lr"] * s["m"] / (s["v"].sqrt() + 1e-2)
        self.steps += 1


def onebit(rank, seed):
    model = mlp(seed, 8, 16, 4)
    opt = OneBit(model.parameters())
    for step in range(4):
        fit(model, opt, *batch(seed, 2 * step + rank))
        accrecord.step()    # the optimizer is none of torch's
    return kept(model, **{f"left{i}": opt.state[p]["left"] for i, p in enumerate(model.parameters())})


def onebit_whole(seed):
    model = mlp(seed, 8, 16, 4)
    params = list(model.parameters())
    m, v = ([torch.zeros_like(p) for p in params] for _ in range(2))
    left = [[torch.zeros_like(p) for p in params] for _ in range(2)]
    for step in range(4):
        grads = [grads_of(model, *batch(seed, 2 * step + r)) for r in range(2)]
        with torch.no_grad():
            for i, p in enumerate(params):
                mean = (grads[0][i] + grads[1][i]) / 2
                if step < 2:
                    m[i] = 0.9 * m[i] + 0.1 * mean
                    v[i] = 0.99 * v[i] + 0.01 * mean ** 2
                else:
                    full = [0.9 * m[i] + 0.1 * grads[r][i] + left[r][i] for r in range(2)]
                    for r in range(2):
                        left[r][i] = full[r] - sign(full[r])
                    m[i] = (sign(full[0]) + sign(full[1])) / 2
                p -= 1e-2 * m[i] / (v[i].sqrt() + 1e-2)
    return [kept(model, **{f"left{i}": e for i, e in enumerate(errors)}) for errors in left]


def private(model, x, y, g):
    """The sum of clipped gradients of each sample, with noise."""
    total = [torch.zeros_like(p) for p in model.parameters()]
    for i in range(len(x)):
        grads = grads_of(model, x[i:i + 1], y[i:i + 1])
        norm = torch.stack([v.norm() for v in grads]).norm()
        for t, v in zip(total, grads):
            t += v * (0.5 / (norm + 1e-6)).clamp(max=1)
    return [t + 0.1 * torch.randn(t.shape, generator=g) for t in total]


# Differentially private SGD (arXiv 1607.00133): each rank adds its share of the noise.
def dpsgd(rank, seed):
    model = mlp(seed, 8, 16, 4)
    opt = torch.optim.SGD(model.parameters(), lr=0.2)
    g = torch.Generator().manual_seed(seed + 50 + rank)
    for step in range(2):
        x, y = batch(seed, 2 * step + rank)
        for p, v in zip(model.parameters(), private(model, x, y, g)):
            dist.all_reduce(v)
            p.grad = v / 8
        opt.step()
    return kept(model)


def dpsgd_whole(seed):
    model = mlp(seed, 8, 16, 4)
    gs = [torch.Generator().manual_seed(seed + 50 + r) for r in range(2)]
    for step in range(2):
        sums = [private(model, *batch(seed, 2 * step + r), gs[r]) for r in range(2)]
        put([model], [p - 0.2 * (a + b) / 8 for p, a, b in zip(model.parameters(), *sums)])
    return kept(model)


# Join: rank 1 has a batch less and shadows the last; the mean is over those that still have one.
def join(rank, seed):
    model = DDP(mlp(seed, 8, 16, 4))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    with Join([model], divide_by_initial_world_size=False):
        for step in range(3 - rank):
            fit(model, opt, *batch(seed, 2 * step + rank))
    return kept(model.module)


def join_whole(seed):
    model = mlp(seed, 8, 16, 4)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        parts = [batch(seed, 2 * step + r) for r in range(2) if step < 3 - r]
        fit(model, opt, *(torch.cat(t) for t in zip(*parts)))
    return kept(model)


# Accumulation: rank 0 takes three micro-batches of 2 and rank 1 one of 6, each weighed by its samples.
def accumulate(rank, seed):
    model = DDP(mlp(seed, 8, 16, 4))
    opt = torch.optim.AdamW(model.parameters(), lr=1e-2, eps=1e-3)
    for step in range(2):
        x, y = batch(seed, 2 * step + rank, 6)
        parts = list(zip(x.split(6 if rank else 2), y.split(6 if rank else 2)))
        opt.zero_grad()
        for a, b in parts[:-1]:
            with model.no_sync():
                (F.mse_loss(model(a), b) * len(a) / 6).backward()
        a, b = parts[-1]
        (F.mse_loss(model(a), b) * len(a) / 6).backward()
        opt.step()
    return kept(model.module)


def accumulate_whole(seed):
    model = mlp(seed, 8, 16, 4)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-2, eps=1e-3)
    for step in range(2):
        fit(model, opt, *(torch.cat(t) for t in zip(*(batch(seed, 2 * step + r, 6) for r in range(2)))))
    return kept(model)


# Delayed gradients: the reduction of a step runs during the next, which applies it.
def delayed(rank, seed):
    model = mlp(seed, 8, 16, 4)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    flying = []
    for step in range(4):
        grads = grads_of(model, *batch(seed, 2 * step + rank))
        for p, (work, g) in zip(model.parameters(), flying):
            work.wait()
            p.grad = g / 2
        if flying:
            opt.step()
        flying = [(dist.all_reduce(g, async_op=True), g) for g in grads]
    for work, _ in flying:
        work.wait()
    return kept(model)


def delayed_whole(seed):
    model, late = mlp(seed, 8, 16, 4), None
    for step in range(4):
        x, y = (torch.cat(t) for t in zip(batch(seed, 2 * step), batch(seed, 2 * step + 1)))
        grads = grads_of(model, x, y)
        if late:
            put([model], [p - 0.1 * g for p, g in zip(model.parameters(), late)])
        late = grads
    return kept(model)


# Batches of other sizes, where the loss is a sum over the tokens of all ranks and the gradients are summed.
def tokens(rank, seed):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Embedding(12, 8), nn.LayerNorm(8), nn.Linear(8, 12))
    opt = torch.optim.SGD(model.parameters(), lr=0.5)
    for step in range(2):
        ids = batch(seed, 2 * step + rank, 3 + 4 * rank, 6)[0].mul(4).long().remainder(12)
        count = torch.tensor(float(ids[:, 1:].numel()))
        dist.all_reduce(count)
        opt.zero_grad()
        loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten(), reduction="sum")
        (loss / count).backward()
        for p in model.parameters():
            dist.all_reduce(p.grad)
        opt.step()
    return kept(model)


def tokens_whole(seed):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Embedding(12, 8), nn.LayerNorm(8), nn.Linear(8, 12))
    opt = torch.optim.SGD(model.parameters(), lr=0.5)
    for step in range(2):
        ids = torch.cat([batch(seed, 2 * step + r, 3 + 4 * r, 6)[0] for r in range(2)])
        ids = ids.mul(4).long().remainder(12)
        opt.zero_grad()
        F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()).backward()
        opt.step()
    return kept(model)


def normed(seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 4))


# DDP that leaves BatchNorm's buffers to each rank.
def buffers(rank, seed):
    model = DDP(normed(seed), broadcast_buffers=False)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        fit(model, opt, *batch(seed, 2 * step + rank))
    return kept(model.module)


def buffers_whole(seed):
    models = [normed(seed) for _ in range(2)]
    for step in range(3):
        grads = [grads_of(models[r], *batch(seed, 2 * step + r)) for r in range(2)]
        put(models, [p - 0.05 * (a + b) for p, a, b in zip(models[0].parameters(), *grads)])
    return [kept(m) for m in models]


# ZeRO's first stage: a rank has the optimizer of some layers, of which gradients come to it alone.
def zero(rank, seed, ranks=3):
    model = mlp(seed, 8, 16, 12, 4)
    owned = [list(m.parameters()) for m in model if isinstance(m, nn.Linear)]
    opt = torch.optim.AdamW(owned[rank] if ranks > 1 else model.parameters(), lr=1e-2, eps=1e-3)
    for step in range(2):
        x, y = batch(seed, step, 6)
        model.zero_grad()
        F.mse_loss(model(x.chunk(ranks)[rank]), y.chunk(ranks)[rank]).backward()
        if ranks > 1:
            for owner, params in enumerate(owned):
                for p in params:
                    p.grad /= ranks
                    dist.reduce(p.grad, owner)
        opt.step()
        if ranks > 1:
            for owner, params in enumerate(owned):
                for p in params:
                    dist.broadcast(p.data, owner)
    return kept(model)


def zero_whole(seed):
    return zero(0, seed, 1)


NAMES = {"localsgd": 3, "diloco": 2, "gossip": 4, "fednova": 3, "powersgd": 2, "topk": 3, "onebit": 2,
         "dpsgd": 2, "join": 2, "accumulate": 2, "delayed": 2, "tokens": 2, "buffers": 2,
         "zero": 3}
PROGRAMS = {n: (r, right(globals()[n])) for n, r in NAMES.items()}
WHOLE = {n: globals()[n + "_whole"] for n in NAMES}
TOO = {"powersgd": powersgd_too}
