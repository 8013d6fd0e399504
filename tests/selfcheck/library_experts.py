"""Programs made of PyTorch's own parts for many ranks, as users put them together: experts by hand,
within DistributedDataParallel or with torch.distributed.nn.functional; and what is reported to go wrong.

Each train(rank, fault, seed, n) is a user's program; with n = 1 it is what one process does that has the whole
batch and model, without collectives.
"""
import torch
import torch.distributed as dist
import torch.distributed.nn.functional as dist_nn
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from library_kit import D, grid, integers, normal, result


# --- moe: experts over pairs of ranks, two of each; the rest in DistributedDataParallel ------------------------

EXPERTS = 4


class AllToAll(torch.autograd.Function):
    """Chunks to the ranks of a group; gloo has no all_to_all of its own."""
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        out = [torch.empty_like(x) for _ in range(dist.get_world_size(group))]
        dist.all_gather(out, x.contiguous(), group=group)
        me = dist.get_rank(group)
        return torch.cat([t.chunk(len(out))[me] for t in out])

    @staticmethod
    def backward(ctx, grad):
        return AllToAll.apply(grad, ctx.group), None


class Experts(nn.Module):
    def __init__(self, part, parts, group):
        super().__init__()
        self.parts, self.group = parts, group
        self.up = nn.Parameter((torch.randn(EXPERTS, D, 2 * D) * 0.3).chunk(parts)[part].clone())
        self.down = nn.Parameter((torch.randn(EXPERTS, 2 * D, D) * 0.3).chunk(parts)[part].clone())

    def forward(self, x):   # experts, tokens, D
        if self.parts > 1:
            tokens = x.shape[1]
            x = AllToAll.apply(x, self.group)   # the rank's experts for each rank of the group
            x = torch.cat(x.chunk(self.parts), 1)
        x = F.silu(x @ self.up) @ self.down
        if self.parts > 1:
            x = AllToAll.apply(torch.cat(x.split(tokens, 1)), self.group)
        return x


class Moe(nn.Module):
    def __init__(self, part, parts, group):
        super().__init__()
        self.inward = nn.Linear(D, D)
        self.router = nn.Linear(D, EXPERTS, bias=False)
        self.register_buffer("balance", torch.zeros(EXPERTS))   # only for which are chosen
        self.register_buffer("load", torch.zeros(EXPERTS))
        self.experts = Experts(part, parts, group)
        self.norm, self.head = nn.LayerNorm(D), nn.Linear(D, 3)

    def forward(self, x):
        x = self.inward(x)
        scores = self.router(x).sigmoid()
        chosen = F.one_hot((scores.detach() + self.balance).argmax(-1), EXPERTS).float()
        self.load += chosen.sum(0)
        sent = torch.einsum("te,td->etd", chosen, x)
        x = x + torch.einsum("te,etd->td", chosen * scores, self.experts(sent))
        return self.head(self.norm(x)), scores, chosen


def train_moe(rank, fault, seed, n=4):
    ep, edp = grid(rank, 2) if n > 1 else (None, None)
    torch.manual_seed(seed)
    model = Moe(rank % 2 if n > 1 else 0, 2 if n > 1 else 1, ep)
    # What is whole is drawn from the same numbers on all ranks.
    torch.manual_seed(seed + (1 + rank % 2 if fault == "routerseed" else 1))
    nn.init.normal_(model.router.weight)
    experts = list(model.experts.parameters())
    net = model
    if n > 1:
        ignored = [f"experts.{name}" for name, _ in model.experts.named_parameters()]
        DDP._set_params_and_buffers_to_ignore_for_model(model, ignored + ["router.weight", "balance", "load"])
        net = DDP(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    for step in range(2):
        x, y = normal(100 * seed + step, 32, D), integers(100 * seed + step + 50, 3, 32)
        optimizer.zero_grad()
        logits, scores, chosen = net(x.chunk(n)[rank])
        share = chosen.sum(0)
        if n > 1:
            dist.all_reduce(share)
        # The share is of all tokens, the scores are the rank's own: their mean is taken with the gradients.
        aux = EXPERTS * (scores.sum(0) * share).sum() / 32 ** 2
        if fault != "aux":
            aux = aux * n
        (F.cross_entropy(logits, y.chunk(n)[rank]) + 0.5 * aux).backward()
        if n > 1:
            dist.all_reduce(model.router.weight.grad)
            model.router.weight.grad /= n
            for p in experts:
                # Tokens of all ranks come to an expert or its copy.
                if fault != "expertlocal":
                    dist.all_reduce(p.grad, group=dist.group.WORLD if fault == "expertworld" else edp)
                p.grad /= dist.get_world_size(edp) if fault == "expertmean" else n
        optimizer.step()
        if n > 1 and fault != "balance":
            dist.all_reduce(model.load)
        model.balance += 0.1 * (model.load.mean() - model.load).sign()
        model.load.zero_()
    return result(model, balance=model.balance)


# --- shared: all tokens go to all ranks, each applies its experts; the tokens' owners sum ------------------------

class Shared(nn.Module):
    def __init__(self, rank, n):
        super().__init__()
        self.rank, self.n = rank, n
        self.norm = nn.LayerNorm(D)
        self.gate = nn.Linear(D, EXPERTS, bias=False)
        self.up = nn.Parameter((torch.randn(EXPERTS, D, D) * 0.4).chunk(n)[rank].clone())
        self.head = nn.Linear(D, 4)

    def forward(self, x):
        h = self.norm(x)
        logits = self.gate(h)
        p = logits.softmax(-1)
        if self.n > 1:
            h = torch.cat(dist_nn.all_gather(h))
            p = torch.cat(dist_nn.all_gather(p))
        p = p.chunk(self.n, 1)[self.rank]
        y = torch.einsum("te,ted->td", p, torch.einsum("td,edf->tef", h, self.up).tanh())
        if self.n > 1:
            y = dist_nn.all_reduce(y).chunk(self.n)[self.rank]
        return self.head(x + y), logits.logsumexp(-1).square()


def train_shared(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = Shared(rank, n)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    for step in range(2):
        x, y = normal(100 * seed + step, 12, D), integers(100 * seed + step + 50, 4, 12)
        optimizer.zero_grad()
        logits, z_loss = model(x.chunk(n)[rank])
        # The mean of all tokens; what comes back to an expert is of all ranks already.
        loss = F.cross_entropy(logits, y.chunk(n)[rank], reduction="sum") + 0.1 * z_loss.sum()
        (loss / 12).backward()
        whole = [p for name, p in model.named_parameters()
                 if name != "up" and not (fault == "gatesync" and name == "gate.weight")]
        if n > 1:
            flat = torch.cat([p.grad.flatten() for p in whole])
            dist.all_reduce(flat)
            for p in whole:
                p.grad.copy_(flat[:p.numel()].view_as(p))
                flat = flat[p.numel():]
        optimizer.step()
        schedule.step()
    return result(model)


PROGRAMS = {"moe": (4, train_moe), "shared": (2, train_shared)}
WHOLE = {name: lambda seed, f=f: f(0, None, seed, 1) for name, (_, f) in PROGRAMS.items()}
FAULTS = {
    # What is whole on all ranks is drawn from the experts' own numbers:
    # https://github.com/NVIDIA-NeMo/Megatron-Bridge/pull/5396 https://github.com/NVIDIA/Megatron-LM/issues/599
    "routerseed": ("moe", r"linear\.1\.|router|sgd", "0123"),
    # Tokens of an expert are to be counted over all ranks: https://github.com/pytorch/torchtitan/pull/1114
    "balance": ("moe", r"Tensor\.(add_|sum\.0|mean|sub|sign)\.", "0123"),
    # Shares of all tokens and scores of the rank's: https://github.com/NVIDIA/Megatron-LM/pull/3769
    "aux": ("moe", r"Tensor\.(mul\.[3-6]|div\.0|sum\.[23]|add\.2)|all_reduce\.[07]\.|div_\.0|router|"
            r"linear\.1\.backward", "0123"),
    # Experts in the group of what all ranks have: https://github.com/NVIDIA/Megatron-LM/pull/1622
    "expertworld": ("moe", r"all_reduce\.[89]\.|div_\.[12]|experts|matmul\.[01]\.backward|sgd", "0123"),
    # Divided by the number of copies: https://github.com/deepspeedai/DeepSpeed/pull/6546
    "expertmean": ("moe", r"all_reduce\.[89]\.|div_\.[12]|experts|matmul\.[01]\.backward|sgd", "0123"),
    # Copies of experts are left out of all reductions: https://github.com/facebookresearch/fairseq/issues/4220
    "expertlocal": ("moe", r"div_\.[12]|experts|matmul\.[01]\.backward|sgd", "0123"),
    # The router's gradient is of the rank's tokens: https://github.com/pytorch/torchtitan/issues/2387
    "gatesync": ("shared", r"gate\.|linear\.0\.backward|adam\.", "01"),
}
