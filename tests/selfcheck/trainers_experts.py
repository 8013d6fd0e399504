"""Small trainers: mixtures of experts, and what public trackers report to go wrong with their routers, gradients
and norms.

Each train(rank, fault, seed, n) is a user's program on n ranks; with n = 1 it is what one process does that has the
whole model and batch, without the collectives.
"""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

from trainers_kit import D, VOCAB, Enter, GatherSeq, RMSNorm, ScatterSeq, ends, ids, my_groups, rand, shard, state


# --- moeep: data parallel ranks with two experts each, to which tokens are sent -----------------------------------

class SendTokens(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, give, take):
        ctx.splits = give, take
        out = x.new_empty(sum(take), *x.shape[1:])
        dist.all_to_all_single(out, x.contiguous(), take, give)
        return out

    @staticmethod
    def backward(ctx, grad):
        give, take = ctx.splits
        out = grad.new_empty(sum(give), *grad.shape[1:])
        dist.all_to_all_single(out, grad.contiguous(), give, take)
        return out, None, None


class Experts(nn.Module):
    def __init__(self, total, rank, n):
        super().__init__()
        self.w1, self.w2 = (shard(torch.randn(total, *s) * 0.3, rank, n) for s in ((D, 2 * D), (2 * D, D)))

    def forward(self, x, which):
        """The tokens of each expert, in the order they came in."""
        out = torch.zeros_like(x)
        for e, (w1, w2) in enumerate(zip(self.w1, self.w2)):
            rows = (which == e).nonzero()[:, 0]
            out = out.index_add(0, rows, F.relu(x[rows] @ w1) @ w2)
        return out


class SwitchLayer(nn.Module):
    def __init__(self, rank, n, total=4):
        super().__init__()
        self.n, self.per = n, total // n
        self.gate, self.experts = nn.Linear(D, total, bias=False), Experts(total, rank, n)

    def forward(self, x):
        prob, expert = self.gate(x).softmax(-1).max(-1)
        if self.n == 1:
            return prob[:, None] * self.experts(x, expert)
        order = expert.argsort(stable=True)
        give = torch.bincount(expert // self.per, minlength=self.n)
        take = torch.empty_like(give)
        dist.all_to_all_single(take, give)
        give, take = give.tolist(), take.tolist()
        which = SendTokens.apply(expert[order] % self.per, give, take)
        y = SendTokens.apply(self.experts(SendTokens.apply(x[order], give, take), which), take, give)
        return prob[:, None] * torch.zeros_like(x).index_copy(0, order, y)


class SwitchNet(nn.Module):
    def __init__(self, rank, n):
        super().__init__()
        self.inp, self.ln, self.moe, self.out = nn.Linear(6, D), nn.LayerNorm(D), SwitchLayer(rank, n), nn.Linear(D, 3)

    def forward(self, x):
        x = self.inp(x)
        return self.out(x + self.moe(self.ln(x)))


def train_moeep(rank, fault, seed, n=2):
    torch.manual_seed(seed + 7)
    net = SwitchNet(rank, n)
    experts = list(net.moe.experts.parameters())
    dense = [p for k, p in net.named_parameters() if "experts" not in k]
    opt = torch.optim.SGD([{"params": dense}, {"params": experts}], lr=0.4, momentum=0.9)
    for step in range(3):
        x, y = (t.chunk(n)[rank] for t in (rand(seed * 13 + step, 24, 6), rand(seed * 13 + step + 6, 24, 3)))
        opt.zero_grad()
        F.mse_loss(net(x), y).backward()
        if n > 1:
            for p in dense:
                dist.all_reduce(p.grad)
                p.grad /= n
            for p in experts:   # of all ranks' losses already
                if fault != "epdivide":
                    p.grad /= n
        square = sum(p.grad.norm() ** 2 for p in experts)
        if n > 1 and fault not in ("epnorm", "normmean"):
            dist.all_reduce(square)
        norm = (square + sum(p.grad.norm() ** 2 for p in dense)).sqrt()
        if fault == "normmean":
            dist.all_reduce(norm)
            norm /= n
        for p in net.parameters():
            p.grad *= (0.3 / norm).clamp(max=1.0)
        opt.step()
    return ends(net)


# --- moetp: tensor parallel ranks that have all tokens, and each its experts and its half of the shared one --------

class Combine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, fault):
        ctx.fault, x = fault, x.clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        if ctx.fault == "reducetwice":
            grad = grad.clone()
            dist.all_reduce(grad)
        return grad, None


class MoeTp(nn.Module):
    def __init__(self, rank, n, fault, total=4, top_k=2):
        super().__init__()
        self.rank, self.n, self.fault, self.total, self.top_k = rank, n, fault, total, top_k
        self.router, self.experts = nn.Linear(D, total, bias=False), Experts(total, rank, n)
        self.shared_up = shard(nn.Linear(D, 2 * D).weight, rank, n)
        self.shared_down = shard(nn.Linear(2 * D, D).weight, rank, n, 1)

    def forward(self, x):
        probs = self.router(x).softmax(-1)
        top, chosen = probs.topk(self.top_k, -1)
        load = F.one_hot(chosen, self.total).sum((0, 1)).float() / chosen.numel()
        aux = self.total * (load * probs.mean(0)).sum()
        if self.n > 1:
            x = Enter.apply(x)
            top = Enter.apply(top) if self.fault != "routertp" else top
        out = F.linear(F.silu(F.linear(x, self.shared_up)), self.shared_down)
        per = self.total // self.n
        for k in range(self.top_k):
            out = out + top[:, k:k + 1] * self.experts(x, chosen[:, k] - self.rank * per)
        return (out if self.n == 1 else Combine.apply(out, self.fault)), aux


class MoeTpNet(nn.Module):
    def __init__(self, rank, n, fault):
        super().__init__()
        self.embed, self.norm1, self.norm2 = nn.Linear(5, D), RMSNorm(), RMSNorm()
        self.moe1, self.moe2, self.head = MoeTp(rank, n, fault), MoeTp(rank, n, fault), nn.Linear(D, 4)

    def forward(self, x):
        x, total = self.embed(x), 0.0
        for norm, moe in ((self.norm1, self.moe1), (self.norm2, self.moe2)):
            y, aux = moe(norm(x))
            x, total = x + y, total + aux
        return self.head(x), total


def train_moetp(rank, fault, seed, n=2):
    torch.manual_seed(seed + 9)
    net = MoeTpNet(rank, n, fault)
    opt = torch.optim.Adagrad(net.parameters(), lr=0.02, eps=1e-4)
    for step in range(2):
        x, y = rand(seed * 19 + step, 10, 5), ids(seed * 19 + step + 4, 4, 10)
        opt.zero_grad()
        logits, aux = net(x)
        (F.cross_entropy(logits, y) + 0.05 * aux).backward()
        opt.step()
    return ends(net)


# --- moeedp: two groups of two expert parallel ranks; tokens and probabilities are gathered in a group -------------

class GatherMoe(nn.Module):
    def __init__(self, rank, ep, fault, total=4):
        super().__init__()
        self.ep, self.fault, self.total = ep, fault, total
        n = 1 if ep is None else 2
        self.first = rank % n * (total // n)
        self.router, self.experts = nn.Linear(D, total), Experts(total, rank % n, n)

    def forward(self, x):
        logits = self.router(x)
        probs, z = logits.softmax(-1), logits.logsumexp(-1).square().mean()
        if self.ep is not None:
            x = GatherSeq.apply(x, self.ep)
            if self.fault == "gatedetach":
                parts = [torch.empty_like(probs) for _ in range(2)]
                dist.all_gather(parts, probs.detach(), group=self.ep)
                probs = torch.cat(parts)
            else:
                probs = GatherSeq.apply(probs, self.ep)
        top, chosen = probs.max(-1)
        out = top[:, None] * self.experts(x, chosen - self.first)
        return (out if self.ep is None else ScatterSeq.apply(out, self.ep)), z


class Tagger(nn.Module):
    def __init__(self, rank, ep, fault):
        super().__init__()
        self.word, self.norm, self.moe = nn.Embedding(VOCAB, D), nn.LayerNorm(D), GatherMoe(rank, ep, fault)
        self.tag = nn.Linear(D, 6)

    def forward(self, t):
        x = self.word(t).flatten(0, 1)
        y, z = self.moe(self.norm(x))
        return self.tag(x + y), z


def train_moeedp(rank, fault, seed, n=4):
    ep = edp = None
    if n > 1:
        ep, edp = my_groups(rank)
    torch.manual_seed(seed + 11)
    model = Tagger(rank, ep, fault)
    opt = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9, weight_decay=0.01)
    sched = torch.optim.lr_scheduler.ExponentialLR(opt, 0.8)
    for step in range(3):
        t, y = (v.chunk(n)[rank] for v in (ids(seed * 29 + step, VOCAB, 8, 4), ids(seed * 29 + step + 3, 6, 8, 4)))
        opt.zero_grad()
        logits, z = model(t)
        (F.cross_entropy(logits, y.flatten()) + 0.01 * z).backward()
        for name, p in model.named_parameters():
            if n == 1:
                continue
            if "experts" not in name:
                dist.all_reduce(p.grad)
            elif fault != "edpskip":
                dist.all_reduce(p.grad, group=edp)
            p.grad.div_(2 if fault == "edpdiv" and "experts" in name else n)
        opt.step()
        sched.step()
    return ends(model)


# --- moe: a router whose load is balanced over the whole batch ----------------------------------------------

class Moe(nn.Module):
    def __init__(self, n, fault, d=6, experts=4):
        super().__init__()
        self.n, self.fault = n, fault
        self.inp, self.gate, self.out = nn.Linear(5, d), nn.Linear(d, experts, bias=False), nn.Linear(d, 2)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(d, 8), nn.SiLU(), nn.Linear(8, d)) for _ in range(experts))

    def aux_loss(self, probs, top):
        """The balance of the whole batch: which part of it an expert has, times its mean probability."""
        tokens_per_expert = F.one_hot(top, probs.shape[1]).sum(0).float()
        if self.n > 1:
            dist.all_reduce(tokens_per_expert)
        total = len(probs) * self.n
        aux = (probs.sum(0) * tokens_per_expert).sum() * probs.shape[1] / total ** 2
        # The probabilities are this rank's only, and the gradients are averaged.
        return aux if self.fault == "auxscale" else aux * self.n

    def forward(self, x):
        h = self.inp(x)
        probs = self.gate(h).softmax(-1)
        top = probs.argmax(-1)
        y = torch.zeros_like(h)
        for e, expert in enumerate(self.experts):
            y = y + expert(h) * (probs[:, e] * (top == e))[:, None]
        return self.out(h + y), self.aux_loss(probs, top)


def clip_by_norm(params, limit, n, fault):
    square = sum(p.grad.square().sum() for p in params)
    if n > 1 and fault == "normtwice":
        dist.all_reduce(square)
    scale = limit / square.sqrt().clamp(min=limit)
    for p in params:
        p.grad.mul_(scale)


def train_moe(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = Moe(n, fault)
    params = list(model.parameters())
    opt = torch.optim.SGD(params, lr=0.1, momentum=0.5)
    for step in range(2):
        x, y = rand(900 * seed + step, 12, 5), rand(900 * seed + step + 9, 12, 2)
        out, aux = model(x.chunk(n)[rank])
        opt.zero_grad()
        (F.mse_loss(out, y.chunk(n)[rank]) + 0.5 * aux).backward()
        if n > 1:
            flat = torch.cat([p.grad.flatten() for p in params])
            dist.all_reduce(flat)
            flat /= n
            for p, g in zip(params, flat.split([p.numel() for p in params])):
                p.grad = g.view_as(p)
        clip_by_norm(params, 0.4, n, fault)
        opt.step()
    return state(model)


PROGRAMS = {"moeep": (2, train_moeep), "moetp": (2, train_moetp), "moeedp": (4, train_moeedp), "moe": (2, train_moe)}
WHOLE = {name: lambda seed, f=f: f(0, None, seed, 1) for name, (_, f) in PROGRAMS.items()}

FAULTS = {
    # Gradients of experts are of all ranks' mean losses: https://github.com/NVIDIA/Megatron-LM/pull/5956
    "epdivide": ("moeep", r"all_to_all_single\.[45]\.|(matmul|unbind|index_add)\.\d\.backward|Tensor\.norm\.[01]\.|"
                 r"\.experts\.|sgd\.1\.", "01"),
    # Each rank clips by the norm of its experts: https://github.com/NVIDIA-NeMo/Automodel/issues/3816
    "epnorm": ("moeep", r"Tensor\.norm\.[01]\.|__pow__\.[01]\.|Tensor\.add\.([1-9]|10)\.forward|sqrt|__rdiv__|clamp|"
               r"mul_|sgd", "01"),
    # Norms of different experts are averaged: https://github.com/deepspeedai/DeepSpeed/issues/8475
    "normmean": ("moeep", r"Tensor\.norm\.[01]\.|__pow__\.[01]\.|Tensor\.add\.([1-9]|10)\.forward|sqrt|"
                 r"all_reduce\.7\.|div_\.9\.|__rdiv__|clamp|mul_", "01"),
    # The router's gradient is of the rank's experts: https://github.com/pytorch/torchtitan/issues/2387
    "routertp": ("moetp", r"topk\.[01]\.|softmax\.[01]\.backward|linear\.[14]\.backward|"
                 r"Tensor\.mul\.(4|5|10|11)\.backward|__getitem__\.(0|6|12|18)\.backward|\.router\.|adagrad", "01"),
    # Experts' outputs are summed, and their gradients too: https://github.com/InternLM/xtuner/pull/1004
    "reducetwice": ("moetp", r"all_reduce\.[25]\.|clone\.[25]\.|Tensor\.add\.[27]\.backward|linear\.[36]\.backward|"
                    r"\.moe[12]\.", "01"),
    # The number of the expert's replicas as divisor: https://github.com/deepspeedai/DeepSpeed/pull/6546
    "edpdiv": ("moeedp", r"all_reduce\.[89]\.|div_\.[56]\.|\.experts\.|sgd", "0123"),
    # The replicas of an expert each have their own gradient: https://github.com/facebookresearch/fairseq/issues/4220
    "edpskip": ("moeedp", r"(matmul|unbind|index_add)\.\d\.backward|div_\.[56]\.|\.experts\.|sgd", "0123"),
    # Probabilities are gathered by what has no gradient: https://github.com/NVIDIA-NeMo/Automodel/pull/2995
    "gatedetach": ("moeedp", r"all_gather|detach|cat\.|Tensor\.max\.|softmax\.0\.|linear\.0\.backward|\.router\.",
                   "0123"),
    # The balance of all tokens, from own probabilities, divided by all tokens twice:
    # https://github.com/NVIDIA/Megatron-LM/pull/3769
    "auxscale": ("moe", r"all_reduce\.0\.|sum\.[12]\.|div\.0\.|mul\.([89]|1[01])\.|softmax\.0\.backward|"
                 r"linear\.1\.backward|gate|add\.5", "01"),
    # The norm of gradients that are the same on all ranks, summed over them:
    # https://github.com/modelscope/twinkle/pull/290
    "normtwice": ("moe", r"all_reduce|sqrt|clamp|rdiv|mul_|square", "01"),
}
