"""Programs with experts: hidden units of experts split over ranks, experts behind an all-gather, and behind an
all-to-all of groups that have them twice; and what is reported to go wrong in such.

With n = 1 a train(rank, fault, seed, n) is what one process does that has all experts and the whole batch.
"""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

from sixkinds_kit import GatherTokens, ScatterTokens, Sum, SumGrad, choose, draw, mesh, state

D, EXPERTS, HIDDEN = 16, 4, 12


def own(weight, rank, n, dim=0):
    return nn.Parameter(weight.detach().chunk(n, dim)[rank].clone())


# --- tpmoe: the hidden units of all experts are split; tokens and router are whole on each rank -------------

class GroupedExperts(nn.Module):
    def __init__(self, rank, n):
        super().__init__()
        self.w1, self.w3 = (own(0.3 * torch.randn(EXPERTS, HIDDEN, D), rank, n, 1) for _ in range(2))
        self.w2 = own(0.3 * torch.randn(EXPERTS, D, HIDDEN), rank, n, 2)

    def forward(self, x, scores):
        """Each token's scores, 0 but for those of its experts."""
        h = F.silu(torch.einsum("td,ehd->teh", x, self.w1)) * torch.einsum("td,ehd->teh", x, self.w3)
        return (torch.einsum("teh,edh->ted", h, self.w2) * scores[..., None]).sum(1)


class TokenChoiceTopKRouter(nn.Module):
    def __init__(self, topk=2):
        super().__init__()
        self.gate, self.topk = nn.Linear(D, EXPERTS, bias=False), topk

    def forward(self, x):
        scores = self.gate(x).sigmoid()
        chosen = scores.topk(self.topk, -1).indices
        return scores * torch.zeros_like(scores).scatter(-1, chosen, 1.0)


class MoeBlock(nn.Module):
    def __init__(self, rank, n, fault):
        super().__init__()
        self.n, self.fault = n, fault
        self.norm, self.router, self.experts = nn.LayerNorm(D), TokenChoiceTopKRouter(), GroupedExperts(rank, n)

    def forward(self, x):
        h = self.norm(x)
        scores = self.router(h)
        if self.n == 1:
            return x + self.experts(h, scores)
        if self.fault != "gatepartial":
            scores = SumGrad.apply(scores, None)
        return x + Sum.apply(self.experts(SumGrad.apply(h, None), scores), None)


def train_tpmoe(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(8, D), MoeBlock(rank, n, fault), MoeBlock(rank, n, fault), nn.Linear(D, 6))
    opt = torch.optim.AdamW(model.parameters(), lr=0.01, betas=(0.9, 0.95))
    for step in range(2):
        x, y = draw(1000 * seed + step, 10, 8), choose(1000 * seed + step, 6, 10)
        opt.zero_grad()
        F.cross_entropy(model(x), y).backward()
        opt.step()
    return state(model)


# --- gather: each rank has two experts, which see the tokens of all ranks -----------------------------------

class GatherMoe(nn.Module):
    def __init__(self, rank, n, fault):
        super().__init__()
        self.rank, self.n, self.fault = rank, n, fault
        self.inp, self.router, self.out = nn.Linear(8, D), nn.Linear(D, EXPERTS), nn.Linear(D, 3)
        self.up = own(0.3 * torch.randn(EXPERTS, HIDDEN, D), rank, n)
        self.down = own(0.3 * torch.randn(EXPERTS, D, HIDDEN), rank, n)

    def gather(self, x):
        return GatherTokens.apply(x) if self.n > 1 else x

    def forward(self, x):
        """The output, and the router's loss of its logits' size."""
        x = torch.tanh(self.inp(x))
        logits = self.router(x)
        top, chosen = logits.topk(2, -1)
        probs = torch.zeros_like(logits).scatter(-1, chosen, top.softmax(-1))
        tokens = self.gather(x)
        probs = self.gather(probs.detach() if self.fault == "probgather" else probs)
        h = F.relu(torch.einsum("td,ehd->teh", tokens, self.up))
        mine = probs.chunk(self.n, -1)[self.rank]
        y = torch.einsum("teh,edh,te->td", h, self.down, mine)
        y = ScatterTokens.apply(y) if self.n > 1 else y
        return self.out(x + y), logits.logsumexp(-1).pow(2).mean()


def train_gather(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = GatherMoe(rank, n, fault)
    opt = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.8)
    for step in range(3):
        x, y = (draw(1000 * seed + 2 * step, 8, 8), draw(1000 * seed + 2 * step + 1, 8, 3))
        opt.zero_grad()
        out, z_loss = model(x.chunk(n)[rank])
        (F.mse_loss(out, y.chunk(n)[rank]) + 0.01 * z_loss).backward()
        for name, p in model.named_parameters():
            if name in ("up", "down"):
                # They have seen all tokens, of losses that are each the mean of a part.
                if fault != "epscale":
                    p.grad /= n
            elif n > 1:
                dist.all_reduce(p.grad)
                p.grad /= n
        opt.step()
    return state(model)


# --- dsmoe: each pair of ranks has both experts, tokens go to them by all-to-all ----------------------------

class AllToAll(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        x = x.contiguous()
        out = torch.empty_like(x)
        dist.all_to_all_single(out, x, group=group)
        return out

    @staticmethod
    def backward(ctx, g):
        return AllToAll.apply(g, ctx.group), None


class SwitchLayer(nn.Module):
    """Top 1 of two experts, with room for all tokens in each."""
    def __init__(self, rank, ep, group):
        super().__init__()
        self.ep, self.group = ep, group
        self.wg = nn.Linear(D, 2, bias=False)
        self.expert_w1 = own(0.3 * torch.randn(2, D, HIDDEN), rank % ep, ep)
        self.expert_w2 = own(0.3 * torch.randn(2, HIDDEN, D), rank % ep, ep)

    def exchange(self, x):
        return AllToAll.apply(x, self.group) if self.ep > 1 else x

    def forward(self, x):
        gates = self.wg(x).softmax(-1)
        mask = F.one_hot(gates.argmax(-1), 2).to(x.dtype)
        sent = self.exchange(torch.einsum("te,td->etd", mask, x))
        rows = sent.view(self.ep, len(self.expert_w1), -1, D).transpose(0, 1).flatten(1, 2)
        rows = torch.bmm(F.gelu(torch.bmm(rows, self.expert_w1)), self.expert_w2)
        back = self.exchange(rows.view(len(self.expert_w1), self.ep, -1, D).transpose(0, 1).flatten(0, 1))
        return torch.einsum("te,etd->td", gates * mask, back)


class SwitchNet(nn.Module):
    def __init__(self, rank, ep, group):
        super().__init__()
        self.embed, self.norm = nn.Embedding(20, D), nn.LayerNorm(D)
        self.moe, self.head = SwitchLayer(rank, ep, group), nn.Linear(D, 20)

    def forward(self, t):
        x = self.embed(t)
        return self.head(x + self.moe(self.norm(x)))


def reduce_gradients(model, world, expert_data_group, fault):
    for name, p in model.named_parameters():
        expert = "expert" in name and fault != "expertddp"
        if not expert:
            dist.all_reduce(p.grad)
        elif fault != "edpskip":
            dist.all_reduce(p.grad, group=expert_data_group)
        # Two ranks have an expert, four had tokens for it.
        p.grad.div_(2 if expert and fault == "edpdiv" else world)


def clip_experts(model, ep, expert_group, fault, limit=0.3):
    dense, experts = (sum(p.grad.norm() ** 2 for name, p in model.named_parameters() if ("expert" in name) == e)
                      for e in (False, True))
    if ep > 1 and fault != "expertnorm":
        dist.all_reduce(experts, group=expert_group)
    norm = (dense + experts).sqrt()
    for p in model.parameters():
        p.grad.mul_(limit / torch.clamp(norm, min=limit))


def train_dsmoe(rank, fault, seed, world=4, ep=2):
    groups = [mesh(rank, [0, 1], [2, 3]), mesh(rank, [0, 2], [1, 3])] if world > 1 else [None, None]
    torch.manual_seed(seed)
    model = SwitchNet(rank, ep, groups[0])
    opt = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: 1 / (1 + s))
    for step in range(2):
        text = choose(1000 * seed + step, 20, 2, 16)
        t, y = (part.chunk(world)[rank] for part in text)
        opt.zero_grad()
        F.cross_entropy(model(t), y).backward()
        if world > 1:
            reduce_gradients(model, world, groups[1], fault)
        clip_experts(model, ep, groups[0], fault)
        opt.step()
        sched.step()
    return state(model)


PROGRAMS = {"tpmoe": (2, train_tpmoe), "gather": (2, train_gather), "dsmoe": (4, train_dsmoe)}
WHOLE = {n: lambda seed, f=f: f(0, None, seed, 1) for n, (_, f) in PROGRAMS.items() if n != "dsmoe"}
WHOLE["dsmoe"] = lambda seed: train_dsmoe(0, None, seed, 1, 1)

FAULTS = {
    # (4) The scores of whole tokens get a part of their gradient:
    # https://github.com/pytorch/torchtitan/issues/2387
    "gatepartial": ("tpmoe", r"mul\.[0235]\.backward|__getitem__\.\d\.backward|sigmoid\.\d\.backward|"
                             r"linear\.[012]\.backward|layer_norm\.\d\.backward|\.(router|norm)\.|adamw", "01"),
    # (4) Probabilities are gathered without a way back: https://github.com/NVIDIA-NeMo/Automodel/pull/2995
    "probgather": ("gather", r"all_gather\.1\.|cat\.1\.|softmax\.0\.|logsumexp\.0\.backward|"
                             r"linear\.1\.backward|\.router\.", "01"),
    # (6) Sums over the tokens of all ranks, beside means: https://github.com/databricks/megablocks/pull/20,
    # https://github.com/NVIDIA/Megatron-LM/pull/5956
    "epscale": ("gather", r"einsum\.[01]\.backward|\.GatherMoe|div_\.0\.|sgd", "01"),
    # (6) The number of an expert's copies as divisor: https://github.com/deepspeedai/DeepSpeed/pull/6546
    "edpdiv": ("dsmoe", r"div_\.[34]\.|all_reduce\.[34]\.|bmm\.[01]\.backward|\.SwitchLayer|norm\.[34]\.|sgd", "0123"),
    # (6) Copies of an expert are not reduced: https://github.com/facebookresearch/fairseq/issues/4220
    "edpskip": ("dsmoe", r"div_\.[34]\.|bmm\.[01]\.backward|\.SwitchLayer|norm\.[34]\.|sgd", "0123"),
    # (6) One sum for the gradients of different experts: https://github.com/microsoft/Tutel/issues/161
    "expertddp": ("dsmoe", r"all_reduce\.[34]\.|div_\.[34]\.|bmm\.[01]\.backward|\.SwitchLayer|"
                           r"norm\.[34]\.|sgd", "0123"),
    # (6) A norm of the rank's own experts: https://github.com/NVIDIA/Megatron-LM/pull/5916
    "expertnorm": ("dsmoe", r"Tensor\.norm\.[34]\.|pow__\.[34]\.|add\.[7-9]\.|sqrt|clamp|rdiv|mul_|sgd", "0123"),
}
