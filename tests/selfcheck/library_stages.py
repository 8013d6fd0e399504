"""Pipelines, for which PyTorch has no part, by hand as users put them together; and what is reported to go wrong with
the embedding that two stages have.

Each train(rank, fault, seed, n) is a user's program; with n = 1 it is what one process does that has the whole
batch and model, without collectives.
"""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

from library_kit import D, grid, integers, result


# --- pipe: a language model of two stages with one embedding, two micro batches, clipped by the whole norm ------

VOCAB = 16


class Stage(nn.Module):
    def __init__(self, stage, seed):
        super().__init__()
        torch.manual_seed(10 * seed + stage)
        self.stage = stage
        self.embedding = nn.Embedding(VOCAB, D)
        nn.init.normal_(self.embedding.weight, std=0.4)
        self.add_module(f"block{stage}", nn.TransformerEncoderLayer(D, 2, 2 * D, dropout=0.0, batch_first=True))

    def forward(self, x):
        x = self.embedding(x) if self.stage == 0 else x
        x = getattr(self, f"block{self.stage}")(x, torch.ones(5, 5).triu(1).bool())
        return x if self.stage == 0 else F.linear(x, self.embedding.weight)


class Both(nn.Module):
    def __init__(self, seed):
        super().__init__()
        first, last = Stage(0, seed), Stage(1, seed)
        self.embedding, self.block0, self.block1 = first.embedding, first.block0, last.block1
        last.embedding = first.embedding
        self.run = [first, last]

    def forward(self, x):
        return self.run[1](self.run[0](x))


def clip_pipe(model, stage, n, limit=0.3):
    """The embedding counts once."""
    square = sum(p.grad.norm() ** 2 for name, p in model.named_parameters()
                 if stage == 0 or not name.startswith("embedding"))
    if n > 1:
        dist.all_reduce(square)
    for p in model.parameters():
        p.grad.mul_((limit / (square.sqrt() + 1e-6)).clamp(max=1.0))


def train_pipe(rank, fault, seed, n=2):
    model = Stage(rank, seed) if n > 1 else Both(seed)
    if n > 1 and fault != "start":
        dist.broadcast(model.embedding.weight.data, 0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    for step in range(2):
        tokens = integers(100 * seed + step, VOCAB, 4, 6)
        optimizer.zero_grad()
        for micro in tokens.chunk(2):
            if n > 1 and rank == 0:
                hidden = model(micro[:, :-1])
                dist.send(hidden.detach(), 1)
                grad = torch.empty_like(hidden)
                dist.recv(grad, 1)
                hidden.backward(grad)
                continue
            hidden = micro[:, :-1]
            if n > 1:
                hidden = torch.empty(2, 5, D)
                dist.recv(hidden, 0)
                hidden.requires_grad_()
            (F.cross_entropy(model(hidden).flatten(0, 1), micro[:, 1:].flatten()) / 2).backward()
            if n > 1:
                dist.send(hidden.grad, 0)
        if n > 1 and fault != "tied":
            dist.all_reduce(model.embedding.weight.grad)
        clip_pipe(model, rank, n)
        optimizer.step()
    return result(model)


# --- sharded: two pipelines of two stages; each rank updates its half of a flat buffer --------------------------

class Half(nn.Module):
    """A stage; where both are in one process, the embedding is the first one's."""
    def __init__(self, stage, embedding=None):
        super().__init__()
        weight = nn.Parameter(torch.randn(VOCAB, D) * 0.4)
        if stage == 0:
            self.table = weight   # the first of the buffer
        self.gru = nn.GRU(D, D, batch_first=True)
        self.norm = nn.LayerNorm(D)
        if stage == 1:
            self.table = embedding or weight   # the last of it
        self.stage = stage

    def forward(self, x):
        if self.stage == 0:
            x = F.embedding(x, self.table)
        x = x + self.gru(self.norm(x))[0]
        return F.linear(x, self.table) if self.stage == 1 else x


class FlatAdam:
    """Adam of a rank's part of the buffer that has all gradients; its peers have the others."""
    def __init__(self, params, group, part):
        self.params, self.group, self.part = list(params), group, part
        self.flat = nn.Parameter(self.mine(torch.cat([p.data.flatten() for p in self.params])).clone())
        self.adam = torch.optim.Adam([self.flat], lr=0.02)

    def mine(self, flat):
        return flat.chunk(2)[self.part]

    def reduce_scatter(self, grads):
        """The mean of the rank's part; of the others only what the rank itself has. gloo has none of its own."""
        mean = grads.clone()
        dist.all_reduce(mean, group=self.group)
        self.mine(grads).copy_(self.mine(mean) / 2)

    def step(self, grads):
        self.flat.grad = self.mine(grads).clone()
        self.adam.step()
        parts = [torch.empty_like(self.flat.data) for _ in range(2)]
        dist.all_gather(parts, self.flat.data, group=self.group)
        flat = torch.cat(parts)
        for p in self.params:
            p.data.copy_(flat[:p.numel()].view_as(p))
            flat = flat[p.numel():]


def sharded_batch(seed, step):
    tokens = integers(100 * seed + step, VOCAB, 4, 6)
    return tokens[:, :-1], tokens[:, 1:]


def train_sharded(rank, fault, seed):
    peers, line = grid(rank, 2)   # of a stage, and of a pipeline
    stage, replica = rank // 2, rank % 2
    torch.manual_seed(seed)
    halves = [Half(0), Half(1)]
    halves[1].table.data.copy_(halves[0].table.data)
    model = halves[stage]
    params = [p for _, p in sorted(model.named_parameters(), key=lambda item: (item[0] == "table") == (stage == 1))]
    optimizer = FlatAdam(params, peers, replica)
    for step in range(2):
        x, y = (t.chunk(2)[replica] for t in sharded_batch(seed, step))
        for p in params:
            p.grad = None
        if stage == 0:
            h = model(x)
            dist.send(h.detach(), rank + 2)
            grad = torch.empty_like(h)
            dist.recv(grad, rank + 2)
            h.backward(grad)
        else:
            h = torch.empty(2, 5, D)
            dist.recv(h, rank - 2)
            h.requires_grad_()
            F.cross_entropy(model(h).flatten(0, 1), y.flatten()).backward()
            dist.send(h.grad, rank - 2)
        grads = torch.cat([p.grad.flatten() for p in params])
        size = model.table.numel()
        table = grads[:size] if stage == 0 else grads[-size:]
        if fault == "early":
            optimizer.reduce_scatter(grads)
            dist.all_reduce(table, group=line)
        else:
            dist.all_reduce(table, group=line)
            optimizer.reduce_scatter(grads)
        optimizer.step(grads)
    return {f"{'table' if name == 'table' else f'{stage}.{name}'}": p.data for name, p in model.named_parameters()}


def whole_sharded(seed):
    torch.manual_seed(seed)
    first = Half(0)
    last = Half(1)
    last.table = first.table
    both = nn.Sequential(first, last)
    adam = torch.optim.Adam(both.parameters(), lr=0.02)
    for step in range(2):
        x, y = sharded_batch(seed, step)
        adam.zero_grad()
        F.cross_entropy(both(x).flatten(0, 1), y.flatten()).backward()
        adam.step()
    return {"table" if name == "0.table" else name: p.data for name, p in both.named_parameters()}


PROGRAMS = {"pipe": (2, train_pipe), "sharded": (4, train_sharded)}
WHOLE = {name: lambda seed, f=f: f(0, None, seed, 1) for name, (_, f) in PROGRAMS.items()}
WHOLE.update(sharded=whole_sharded)
FAULTS = {
    # Gradients of a tied embedding: https://github.com/uw-syfi/piper/issues/13
    "tied": ("pipe", r"embedding\.\d\.backward|Module\.embedding|linear\.[25]\.backward|sgd", "01"),
    # Its copies do not start from the same: https://github.com/uw-syfi/piper/pull/25
    "start": ("pipe", r"embedding|linear\.[25]\.|all_reduce\.0\.|sgd", "01"),
    # Its sum is taken when each rank has the mean of its own part only:
    # https://github.com/NVIDIA/Megatron-LM/issues/844
    "early": ("sharded", r"all_reduce|copy_\.[1-9]|adam\.|all_gather", "0123"),
}
