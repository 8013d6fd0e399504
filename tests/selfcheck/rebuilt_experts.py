"""Mixtures of experts in the style of transformers and torchtitan among others, with what trackers report: routers,
balancing losses, gradients of experts.

Each train(rank, fault, seed, n) is a user's program; with n = 1 it is what one process does that has the whole
batch and model.
"""
import torch
import torch.distributed as dist
import torch.distributed.nn.functional as dist_fn
import torch.nn as nn
import torch.nn.functional as F
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors
from torch.nn.parallel import DistributedDataParallel as DDP

from rebuilt_kit import VOCAB, choose, draw, kept, my_group


# --- moe: four data parallel ranks, two expert parallel groups of two; a balancing loss over all tokens ---------

class Exchange(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group, x = group, x.contiguous()
        out = torch.empty_like(x)
        dist.all_to_all_single(out, x, group=group)
        return out

    @staticmethod
    def backward(ctx, g):
        g = g.contiguous()
        out = torch.empty_like(g)
        dist.all_to_all_single(out, g, group=ctx.group)
        return out, None


class Experts(nn.Module):
    """The local ones of n_experts, in one tensor; without biases, what is empty stays 0."""
    def __init__(self, n_experts, d, rank, n):
        super().__init__()
        self.w1, self.w2 = (nn.Parameter(torch.randn(n_experts, *s).chunk(n)[rank].clone() / d ** 0.5)
                            for s in ((d, 2 * d), (2 * d, d)))
        for p in self.parameters():
            p.expert = True

    def forward(self, x):
        return torch.bmm(F.relu(torch.bmm(x, self.w1)), self.w2)


class MoeLayer(nn.Module):
    def __init__(self, d, ep_rank, ep, ep_group, n, fault, n_experts=2):
        super().__init__()
        self.gate, self.experts = nn.Linear(d, n_experts, bias=False), Experts(n_experts, d, ep_rank, ep)
        self.ep, self.ep_group, self.n, self.fault = ep, ep_group, n, fault

    def forward(self, x):
        gates = self.gate(x).softmax(-1)
        mask = F.one_hot(gates.argmax(-1), gates.shape[1]).float()
        counts, tokens = mask.sum(0), float(len(x))
        if self.n > 1:
            dist.all_reduce(counts)
        importance = gates.sum(0) / (tokens * self.n if self.fault == "globalaux" else tokens)
        aux = len(counts) * (importance * counts / (tokens * self.n)).sum()
        dispatched = mask.t()[..., None] * x
        if self.ep > 1:
            dispatched = Exchange.apply(dispatched, self.ep_group).flatten(0, 1)[None]
        out = self.experts(dispatched)
        if self.ep > 1:
            out = Exchange.apply(out.view(self.ep, len(x), -1), self.ep_group)
        return (out * (gates * mask).t()[..., None]).sum(0), aux


class MoeNet(nn.Module):
    def __init__(self, *args, d=10):
        super().__init__()
        self.inp, self.norm, self.moe, self.out = nn.Linear(6, d), nn.LayerNorm(d), MoeLayer(d, *args), nn.Linear(d, 3)

    def forward(self, x):
        x = self.inp(x)
        h, aux = self.moe(self.norm(x))
        return self.out(x + h), aux


def train_moe(rank, fault, seed, n=4):
    ep_group = my_group(rank, [0, 1], [2, 3]) if n > 1 else None
    edp_group = my_group(rank, [0, 2], [1, 3]) if n > 1 else None
    torch.manual_seed(seed)
    model = MoeNet(rank % 2, 2 if n > 1 else 1, ep_group, n, fault)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    for step in range(2):
        s = 1000 * seed + 10 * step
        x, y = (t.chunk(n)[rank] for t in (draw(s, 32, 6), choose(s + 1, 3, 32)))
        optimizer.zero_grad()
        logits, aux = model(x)
        (F.cross_entropy(logits, y) + 0.5 * aux).backward()
        if n > 1:
            previous = None
            # Neighbours with one group go together; experts have their own.
            for expert in (False, True):
                grads = [p.grad for p in model.parameters() if getattr(p, "expert", False) == expert]
                group = edp_group if expert else dist.group.WORLD
                if fault == "coalesce" and previous is not None:
                    group = previous
                flat = _flatten_dense_tensors(grads)
                flat.div_(dist.get_world_size(group) if fault == "epscale" else n)
                dist.all_reduce(flat, group=group)
                for grad, mean in zip(grads, _unflatten_dense_tensors(flat, grads)):
                    grad.copy_(mean)
                previous = group
        optimizer.step()
    return kept(model)


# --- hfep: all ranks have the batch, and each its own of four experts, as in transformers -----------------------

class AllReduceBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        g = g.clone()
        dist.all_reduce(g)
        return g


class AllReduceForward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return g


class SparseMoeBlock(nn.Module):
    def __init__(self, d, rank, n, fault):
        super().__init__()
        self.rank, self.n, self.fault = rank, n, fault
        self.router, self.experts = nn.Linear(d, 4, bias=False), Experts(4, d, rank, n)

    def forward(self, hidden):
        scores, indices = self.router(hidden).softmax(-1).topk(2)
        scores = scores / scores.sum(-1, keepdim=True)
        if self.n > 1:
            hidden = AllReduceBackward.apply(hidden)
            if self.fault != "scoregrad":
                scores = AllReduceBackward.apply(scores)
        weights = torch.zeros(len(hidden), 4).scatter(1, indices, scores).chunk(self.n, 1)[self.rank]
        out = self.experts(hidden.expand(weights.shape[1], -1, -1))
        out = (out * weights.t()[..., None]).sum(0)
        return AllReduceForward.apply(out) if self.n > 1 else out


def train_hfep(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = nn.ModuleDict({"embed": nn.Embedding(VOCAB, 12), "norm": nn.LayerNorm(12),
                           "mlp": SparseMoeBlock(12, rank, n, fault), "lm_head": nn.Linear(12, VOCAB)})
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02, eps=1e-3)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: min(1.0, (i + 1) / 2))
    for step in range(3):
        ids = choose(50 * seed + step, VOCAB, 13)
        hidden = model["embed"](ids[:-1])
        hidden = hidden + model["mlp"](model["norm"](hidden))
        loss = F.cross_entropy(model["lm_head"](hidden), ids[1:])
        loss.backward()
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
    return kept(model)


# --- titan: an expert per rank within DistributedDataParallel, balanced by a bias as in torchtitan ---------------

class BiasedMoe(nn.Module):
    def __init__(self, d, rank, n):
        super().__init__()
        self.n, self.gate, self.experts = n, nn.Linear(d, 2, bias=False), Experts(2, d, rank, n)
        self.register_buffer("expert_bias", torch.zeros(2))
        self.register_buffer("tokens_per_expert", torch.zeros(2))

    def forward(self, x):
        scores = self.gate(x).sigmoid()
        routed = F.one_hot((scores + self.expert_bias).argmax(-1), 2).float()
        with torch.no_grad():
            self.tokens_per_expert.add_(routed.sum(0))
        sent = (routed.t()[..., None] * x).contiguous()
        if self.n > 1:
            sent = dist_fn.all_to_all_single(torch.empty_like(sent), sent).flatten(0, 1)[None]
        out = self.experts(sent)
        if self.n > 1:
            out = out.view(2, len(x), -1).contiguous()
            out = dist_fn.all_to_all_single(torch.empty_like(out), out)
        return (out * (scores * routed).t()[..., None]).sum(0)


class VisionMoe(nn.Module):
    def __init__(self, rank, n, d=8):
        super().__init__()
        self.patch, self.norm, self.moe = nn.Conv2d(1, d, 2, 2), nn.LayerNorm(d), BiasedMoe(d, rank, n)
        self.head = nn.Linear(d, 5)

    def forward(self, x):
        h = self.patch(x).flatten(2).transpose(1, 2)
        h = h + self.moe(self.norm(h).flatten(0, 1)).view_as(h)
        return self.head(h.mean(1))


def update_expert_bias(moe, fault, n):
    with torch.no_grad():
        tokens = moe.tokens_per_expert
        if n > 1 and fault != "biaslocal":
            dist.all_reduce(tokens)
        moe.expert_bias.add_(torch.sign(tokens.mean() - tokens), alpha=0.1)
        tokens.zero_()


def train_titan(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    net = VisionMoe(rank, n)
    if n > 1:
        ignored = [f"moe.experts.{name}" for name, _ in net.moe.experts.named_parameters()]
        DDP._set_params_and_buffers_to_ignore_for_model(net, [] if fault == "ddpexperts" else ignored)
        model = DDP(net, broadcast_buffers=False)
    else:
        model = net
    optimizer = torch.optim.SGD(net.parameters(), lr=0.3, momentum=0.9)
    for step in range(3):
        # A batch of bright pictures goes to the other ranks than one of dark ones.
        x = draw(40 * seed + step, 8, 1, 4, 4) + torch.linspace(-1.5, 1.5, 8).view(8, 1, 1, 1)
        x, y = x.chunk(n)[rank], choose(40 * seed + step, 5, 8).chunk(n)[rank]
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        if n > 1:
            # Tokens of all ranks have come to an expert, each with the gradient of its own mean.
            for p in net.moe.experts.parameters():
                if fault != "ddpexperts":
                    p.grad.div_(n)
        optimizer.step()
        update_expert_bias(net.moe, fault, n)
    return kept(net)


PROGRAMS = {"moe": (4, train_moe), "hfep": (2, train_hfep), "titan": (2, train_titan)}
WHOLE = {name: lambda seed, f=f: f(0, None, seed, 1) for name, (_, f) in PROGRAMS.items()}

FAULTS = {
    # The balancing loss is a mean over the tokens of all, of what a rank has:
    # https://github.com/NVIDIA/Megatron-LM/issues/3672
    "globalaux": ("moe", r"\.div\.[01]\.|\.mul\.[015]\.|\.sum\.[12]\.|all_reduce\.0\.", "0123"),
    # Experts have tokens of all ranks, and are averaged over their replicas:
    # https://github.com/deepspeedai/DeepSpeed/issues/5618
    "epscale": ("moe", r"div_\.1\.|all_reduce\.2\.|copy_\.[78]\.|experts|bmm\.\d\.backward|sgd", "0123"),
    # A bucket of experts goes with the group of the bucket before:
    # https://github.com/deepspeedai/DeepSpeed/issues/3521
    "coalesce": ("moe", r"div_\.1\.|all_reduce\.2\.|copy_\.[78]\.|experts|bmm\.\d\.backward|sgd", "0123"),
    # A score has the gradient of the rank's own experts:
    # https://github.com/huggingface/transformers/pull/48205, https://github.com/pytorch/torchtitan/pull/2416
    "scoregrad": ("hfep", r"\.(__getitem__|t|chunk|scatter|div|sum|topk|softmax|linear)\.0\.backward|router|adamw",
                  "01"),
    # The bias of routing follows the rank's own tokens: https://github.com/pytorch/torchtitan/pull/4154
    "biaslocal": ("titan", r"\.sum\.0\.forward|add_\.[01]\.|mean\.1\.|sub\.0\.|sign|\.add\.0\.|argmax", "01"),
    # The wrapper takes experts for replicas: https://github.com/microsoft/Tutel/issues/161
    "ddpexperts": ("titan", r"all_reduce\.[56]\.|experts|bmm|sgd", "01"),
}
