"""Programs whose ranks have other layers, other experts or other parts of a sequence: pipelines with send and
recv, mixtures of experts with all_to_all, ring attention; and what is reported to go wrong in such.

As scripts_data.py: train(rank, fault, seed), and whole_NAME(seed) for one process that has it all.
"""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

import accrecord
from scripts_data import D, Mlp, adamw, choose, draw, state

VOCAB = 20


# --- pipe: two stages, two micro-batches, the words' weights on both ----------------------------------------

class First(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.mlp = nn.Embedding(VOCAB, D), Mlp(out=D)

    def forward(self, t):
        h = self.emb(t)
        return h + self.mlp(h)


class Last(nn.Module):
    def __init__(self):
        super().__init__()
        self.mlp2, self.norm = Mlp(out=D), nn.LayerNorm(D)
        self.emb = nn.Embedding(VOCAB, D)

    def forward(self, h, target):
        h = self.norm(h + self.mlp2(h))
        return F.cross_entropy(F.linear(h, self.emb.weight).flatten(0, 1), target.flatten())


def stages(seed):
    torch.manual_seed(seed)
    first = First()
    return first, Last()


def words(seed, step):
    t = choose(1000 * seed + step, VOCAB, 4, 6)
    return t[:, :-1].chunk(2), t[:, 1:].chunk(2)


def train_pipe(rank, fault, seed):
    model = stages(seed)[rank]
    emb = model.emb.weight
    if fault != "tiedinit":
        dist.broadcast(emb.data, 0)
    opt = adamw(model)
    for s in range(3):
        if s:
            accrecord.step()   # the last stage receives before it calls its model
        ts, targets = words(seed, s)
        opt.zero_grad(set_to_none=True)
        if rank == 0:
            sent = [model(t) for t in ts]
            for h in sent:
                dist.send(h.detach(), 1)
            for h in sent:
                g = torch.empty_like(h)
                dist.recv(g, 1)
                h.backward(g)
            if fault == "stagescale":
                for p in model.parameters():
                    p.grad.div_(2)
        else:
            got = [torch.empty(2, 5, D) for _ in ts]
            for h in got:
                dist.recv(h, 0)
            for h, target in zip(got, targets):
                h.requires_grad_()
                (model(h, target) / len(ts)).backward()
                dist.send(h.grad, 0)
        if fault != "tied":
            dist.all_reduce(emb.grad)
        if fault == "tiedtwice":
            dist.all_reduce(emb.grad)
        opt.step()
    return state(model)


def whole_pipe(seed):
    first, last = stages(seed)
    last.emb = first.emb
    both = nn.ModuleList([first, last])
    opt = adamw(both)
    for s in range(3):
        ts, targets = map(torch.cat, words(seed, s))
        opt.zero_grad()
        last(first(ts), targets).backward()
        opt.step()
    return {**state(first), **state(last)}


# --- pipe3: a frozen stage without an optimizer in the middle, a head and a loss on the last alone ----------

def three(seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(D, D), nn.Tanh()), Mlp(out=D).requires_grad_(False), Mlp()


def train_pipe3(rank, fault, seed):
    model = three(seed)[rank]
    opt = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9) if rank != 1 else None
    for s in range(3):
        if s:
            accrecord.step()   # stages receive before they call their models, and one has no optimizer
        if opt:
            opt.zero_grad()
        for m in range(2):
            x, y = draw(1000 * seed + 10 * s + m, 3, D), draw(1000 * seed + 10 * s + m + 500, 3, 4)
            if rank == 0:
                h = model(x)
                dist.send(h.detach(), 1)
                g = torch.empty_like(h)
                dist.recv(g, 1)
                h.backward(g)
                continue
            h = torch.empty(3, D)
            dist.recv(h, rank - 1)
            h.requires_grad_()
            if rank == 2:
                loss = F.mse_loss(model(h), y) / 2
                loss.backward()
                dist.send(h.grad, 1)
            else:
                out = model(h)
                dist.send(out.detach(), 2)
                g = torch.empty_like(out)
                dist.recv(g, 2)
                if fault == "frozenback":
                    dist.send(g, 0)
                else:
                    out.backward(g)
                    dist.send(h.grad, 0)
        if opt:
            opt.step()
    return state(nn.ModuleDict({str(rank): model}))


def whole_pipe3(seed):
    parts = three(seed)
    model = nn.ModuleList(parts)
    opt = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.2, momentum=0.9)
    for s in range(3):
        opt.zero_grad()
        for m in range(2):
            x, y = draw(1000 * seed + 10 * s + m, 3, D), draw(1000 * seed + 10 * s + m + 500, 3, 4)
            (F.mse_loss(parts[2](parts[1](parts[0](x))), y) / 2).backward()
        opt.step()
    return state(model)


# --- moe, moedp: two experts on each of two ranks, tokens by all_to_all; moedp has each expert twice --------

class AllToAll(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, give, take, group, fault):
        ctx.how, ctx.fault = (give, take, group), fault
        out = x.new_empty(sum(take), x.shape[1])
        dist.all_to_all_single(out, x.contiguous(), take, give, group=group)
        return out

    @staticmethod
    def backward(ctx, g):
        give, take, group = ctx.how
        out = g.new_zeros(sum(give), g.shape[1])
        if ctx.fault == "a2aback":
            n = min(len(g), len(out))
            out[:n] = g[:n]
        else:
            dist.all_to_all_single(out, g.contiguous(), give, take, group=group)
        return out, None, None, None, None


class Moe(nn.Module):
    """Top 1 of four experts; mine: those that this rank has."""
    def __init__(self, mine):
        super().__init__()
        self.inp, self.norm, self.router = nn.Linear(D, D), nn.LayerNorm(D), nn.Linear(D, 4, bias=False)
        experts = [nn.Sequential(nn.Linear(D, 2 * D), nn.ReLU(), nn.Linear(2 * D, D)) for _ in range(4)]
        self.experts = nn.ModuleDict({str(i): experts[i] for i in mine})
        self.head = nn.Linear(D, 3)

    def forward(self, x, exchange=None):
        h = self.norm(self.inp(x))
        weight, choice = self.router(h).softmax(-1).max(-1)
        return self.head(h + weight[:, None] * (exchange or self.local)(h, choice))

    def local(self, h, choice):
        """Of tokens that are here the outputs of their experts."""
        out = torch.zeros_like(h)
        for name, expert in self.experts.items():
            rows = (choice == int(name)).nonzero()[:, 0]
            out = out.index_add(0, rows, expert(h[rows]))
        return out


def dispatch(model, h, choice, group, fault):
    order = (choice // 2).argsort(stable=True)
    give = torch.bincount(choice // 2, minlength=2)
    take = torch.empty_like(give)
    dist.all_to_all_single(take, give, group=group)
    give, take = give.tolist(), take.tolist()
    there = choice.new_empty(sum(take))
    dist.all_to_all_single(there, choice[order], take, give, group=group)
    y = model.local(AllToAll.apply(h[order], give, take, group, fault), there)
    return AllToAll.apply(y, take, give, group, fault)[order.argsort()]


def tokens(seed, step, rank):
    s = 1000 * seed + 100 * step + 10 * rank
    return draw(s, 10, D), choose(s + 1, 3, 10)


def train_moe(rank, fault, seed):
    world = dist.get_world_size()
    alike = [[dist.new_group(r), r] for r in ([[0, 2], [1, 3]] if world > 2 else [[0], [1]])]
    spread = [[dist.new_group(r), r] for r in ([[0, 1], [2, 3]] if world > 2 else [[0, 1]])]
    same, ep = (next(g for g, r in gs if rank in r) for gs in (alike, spread))
    torch.manual_seed(seed)
    model = Moe([2 * (rank % 2), 2 * (rank % 2) + 1])
    if fault == "routerseed":
        torch.manual_seed(seed + 1 + rank)
        model.router.reset_parameters()
    opt = torch.optim.AdamW(model.parameters(), lr=0.01)
    for s in range(2):
        x, y = tokens(seed, s, rank)
        opt.zero_grad()
        F.cross_entropy(model(x, lambda h, choice: dispatch(model, h, choice, ep, fault)), y).backward()
        for name, p in model.named_parameters():
            if p.grad is None:   # an expert that nobody chose
                p.grad = torch.zeros_like(p)
            if name.startswith("experts."):
                if fault == "expertavg":
                    dist.all_reduce(p.grad)
                elif fault == "expertgroup":
                    dist.all_reduce(p.grad, group=ep)
                elif world > 2 and fault != "expertmissing":
                    dist.all_reduce(p.grad, group=same)
                if fault != "expertdiv":
                    p.grad /= 2 if fault == "edpdiv" else world
            elif fault != "routerlocal" or not name.startswith("router."):
                dist.all_reduce(p.grad)
                p.grad /= world
        opt.step()
    return state(model)


def whole_moe(seed, world=2):
    torch.manual_seed(seed)
    model = Moe(range(4))
    opt = torch.optim.AdamW(model.parameters(), lr=0.01)
    for s in range(2):
        opt.zero_grad(set_to_none=False)
        for p in model.parameters():
            p.grad = torch.zeros_like(p)
        for r in range(world):
            x, y = tokens(seed, s, r)
            (F.cross_entropy(model(x), y) / world).backward()
        opt.step()
    return state(model)


# --- ring: three ranks with a third of each sequence, keys and values that go round -------------------------

CP, PART = 3, 4


def around(x, by):
    """What the neighbour has; ranks of one parity send first."""
    rank, out = dist.get_rank(), torch.empty_like(x)
    to, source = (rank + by) % CP, (rank - by) % CP
    x = x.contiguous()
    if rank % 2:
        dist.recv(out, source)
        dist.send(x, to)
    else:
        dist.send(x, to)
        dist.recv(out, source)
    return out


class Shift(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, fault):
        ctx.fault = fault
        return around(x, 1)

    @staticmethod
    def backward(ctx, g):
        return g if ctx.fault == "ringback" else around(g, -1), None


class Ring(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.norm, self.out = nn.Linear(D, 3 * D, bias=False), nn.LayerNorm(D), nn.Linear(D, D)
        self.head = nn.Linear(D, 5)

    def attend(self, q, k, v, rank, n, fault):
        here = rank * q.shape[1] + torch.arange(q.shape[1])
        out, lse, kv = None, None, torch.stack([k, v])
        for i in range(n):
            if i:
                kv = Shift.apply(kv, fault)
            source = (rank - i) % n
            if source <= rank or fault == "ringmask":
                scores = q @ kv[0].transpose(1, 2) / D ** 0.5
                there = source * q.shape[1] + torch.arange(q.shape[1])
                if i == 0 or fault != "ringmask":
                    scores = scores.masked_fill(there > here[:, None], float("-inf"))
                block, one = scores.logsumexp(-1, keepdim=True), scores.softmax(-1) @ kv[1]
                if out is None:
                    out, lse = one, block
                elif fault == "lsemerge":
                    out = (out + one) / 2
                else:
                    both = torch.logaddexp(lse, block)
                    out, lse = out * (lse - both).exp() + one * (block - both).exp(), both
            else:
                out = out + 0 * kv.sum()   # its gradient has to go round all the same
        return out

    def forward(self, x, rank=0, n=1, fault=None):
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        return self.head(x + self.out(self.attend(3 * q, 3 * k, v, rank, n, fault)))


def sequences(seed, step):
    y = choose(1000 * seed + step + 500, 5, 2, CP * PART)
    y[0, 5:] = -100   # a short one: ranks have different numbers of targets
    return draw(1000 * seed + step, 2, CP * PART, D), y


def train_ring(rank, fault, seed):
    torch.manual_seed(seed)
    model = Ring()
    opt = adamw(model)
    for s in range(2):
        x, y = (t.chunk(CP, 1)[rank] for t in sequences(seed, s))
        opt.zero_grad()
        total = F.cross_entropy(model(x, rank, CP, fault).flatten(0, 1), y.flatten(), reduction="sum")
        count = (y != -100).sum().float()
        if fault == "cplocal":
            loss = total / count / CP
        else:
            dist.all_reduce(count)
            loss = total / count
            if fault == "cptimes":
                loss = loss * CP
        loss.backward()
        for name, p in model.named_parameters():
            if not (fault == "cpnorm" and name.startswith("norm.")):
                dist.all_reduce(p.grad)
        opt.step()
    return state(model)


def whole_ring(seed):
    torch.manual_seed(seed)
    model = Ring()
    opt = adamw(model)
    for s in range(2):
        x, y = sequences(seed, s)
        opt.zero_grad()
        F.cross_entropy(model(x).flatten(0, 1), y.flatten()).backward()
        opt.step()
    return state(model)


PROGRAMS = {"pipe": (2, train_pipe), "pipe3": (3, train_pipe3), "moe": (2, train_moe),
            "moedp": (4, train_moe), "ring": (3, train_ring)}
WHOLE = {"pipe": whole_pipe, "pipe3": whole_pipe3, "moe": whole_moe, "moedp": lambda seed: whole_moe(seed, 4),
         "ring": whole_ring}
EXPERTS = r"all_reduce|div_|linear\.[2-5]\.backward|\.experts\.|adamw"

FAULTS = {
    # Words' gradients of the two stages are not summed: https://github.com/uw-syfi/piper/issues/13
    "tied": ("pipe", r"embedding\.\d+\.backward|linear\.[25]\.backward|\.emb\.|adamw", "01"),
    # They are summed twice: https://github.com/pytorch/pytorch/issues/180952
    "tiedtwice": ("pipe", r"all_reduce|adamw", "01"),
    # The copies begin differently: https://github.com/uw-syfi/piper/pull/25
    "tiedinit": ("pipe", r"embedding\.\d\.|linear\.[25]\.|\.emb\.|adamw", "01"),
    # A stage divides by the micro-batches once more: https://github.com/pytorch/torchtitan/issues/1733
    "stagescale": ("pipe", r"div_|all_reduce|adamw|parameters_grad", "0"),
    # A stage without weights to train takes no part in backward:
    # https://github.com/ISEEKYAN/Megatron-LM/pull/209
    "frozenback": ("pipe3", r"send|recv|linear\.\d+\.backward", "01"),
    # Each rank's own gradient of the router: https://github.com/pytorch/torchtitan/issues/2387
    "routerlocal": ("moe", r"linear\.1\.backward|\.router\.|adamw", "01"),
    # Routers that begin differently: https://github.com/NVIDIA/Megatron-LM/issues/599
    "routerseed": ("moe", r"linear\.1\.(for|back)ward|\.router\.|adamw", "01"),
    # Different experts are averaged: https://github.com/NVIDIA/Megatron-LM/pull/5916
    "expertavg": ("moe", EXPERTS, "01"),
    # Experts without the divisor of the rest: https://github.com/deepspeedai/DeepSpeed/pull/5259
    "expertdiv": ("moe", EXPERTS, "01"),
    # Backward of the exchange exchanges nothing: https://github.com/Dao-AILab/flash-attention/issues/1244
    "a2aback": ("moe", r"all_to_all|__[gs]etitem__|index_add|linear\.[2-5]\.backward|\.experts\.", "01"),
    # Averaged within the group that has other experts:
    # https://github.com/NVIDIA-NeMo/Megatron-Bridge/issues/5229
    "expertgroup": ("moedp", EXPERTS, "0123"),
    # The copies' number as divisor, not that of all ranks: https://github.com/deepspeedai/DeepSpeed/pull/6546
    "edpdiv": ("moedp", EXPERTS, "0123"),
    # Copies of an expert are not reduced: https://github.com/facebookresearch/fairseq/issues/4220
    "expertmissing": ("moedp", EXPERTS, "0123"),
    # Blocks of later ranks are seen: https://github.com/zhuzilin/ring-flash-attention/issues/54
    "ringmask": ("ring", r"matmul|masked_fill|softmax|logsumexp|logaddexp", "01"),
    # Blocks are merged without their weights: https://github.com/meta-pytorch/attention-gym/pull/205
    "lsemerge": ("ring", r"add|div|logsumexp", "12"),
    # Gradients of keys and values stay: https://github.com/Dao-AILab/flash-attention/issues/1244
    "ringback": ("ring", r"send|recv|stack\.\d+\.backward|__getitem__|linear\.0\.backward|qkv", "012"),
    # The loss times the number of ranks, where gradients are summed:
    # https://github.com/NVIDIA/Megatron-LM/issues/906
    "cptimes": ("ring", r"cross_entropy|mul|div|all_reduce", "012"),
    # Each rank divides by its own targets: https://github.com/PrimeIntellect-ai/prime-rl/pull/2562
    "cplocal": ("ring", r"cross_entropy|div|sum|float", "012"),
    # A norm that the reduction leaves out: https://github.com/NVIDIA/Megatron-LM/issues/443
    "cpnorm": ("ring", r"layer_norm\.\d+\.backward|\.norm\.|adamw", "012"),
}
