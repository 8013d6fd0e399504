"""Two ranks with copies of what they train: a classifier that is fine-tuned with DistributedDataParallel, an optimizer
whose state is split as ZeRO has it, and two mixtures of experts whose dense weights are copies: one as DeepSpeed and
torchtitan have it, to whose experts tokens travel, one of Hugging Face whose experts are shared out over two cards.

Each train(rank, fault, seed, n) is a user's program; with n = 1 it is what one process does that has the whole batch.
"""
import contextlib

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

from tworanks_experts import AllToAll
from twomore_split import D, SEQ, VOCAB, Copy, Reduce, state, tokens

EXPERTS, HIDDEN, CLASSES = 4, 24, 5


def examples(seed, *shape):
    """Vectors and their classes."""
    g = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, D, generator=g), torch.randint(CLASSES, shape, generator=g)


# --- finetune: two microbatches a step; batches whose loss spikes are left out -------------------------------

class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embeddings, self.norm = nn.Embedding(VOCAB, D), nn.LayerNorm(D)
        self.dense, self.classifier = nn.Linear(D, D), nn.Linear(D, CLASSES)

    def forward(self, ids):
        return self.classifier(torch.tanh(self.dense(self.norm(self.embeddings(ids)).mean(1))))


def train_finetune(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    net = Classifier()
    model = DistributedDataParallel(net) if n > 1 else net
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
    accum_grad, before = 2, 0
    for step in range(3):
        spike = torch.zeros(())
        for batch_idx in range(accum_grad):
            ids = tokens(1000 * seed + 10 * step + batch_idx, 6, SEQ)
            labels = (ids[:, 0] % CLASSES).chunk(n)[rank]
            ids = ids.chunk(n)[rank]
            # Of the second step the last examples are spoiled, and all ranks leave it out.
            weight = 40.0 if step == 1 and rank == n - 1 and batch_idx == 1 else 1.0
            last = (batch_idx + (fault != "nosync")) % accum_grad == 0
            with contextlib.nullcontext() if n == 1 or last else model.no_sync():
                loss = F.cross_entropy(model(ids), labels) * weight / accum_grad
                loss.backward()
            spike = torch.maximum(spike, (loss.detach() > 10 * before).float() if before else spike)
        before = before or loss.item()
        if n > 1 and fault != "localskip":
            dist.all_reduce(spike, dist.ReduceOp.MAX)
        if not spike:
            optimizer.step()
        optimizer.zero_grad()
    return state(net)


# --- zero: each rank has the optimizer's state of some weights, steps those, and hands them on ---------------

class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(D), nn.Linear(D, HIDDEN), nn.Linear(HIDDEN, D)

    def forward(self, x):
        return x + self.down(F.silu(self.up(self.norm(x))))


class ZeroAdam:
    """Adam of the rank's weights."""
    def __init__(self, model, n, fault, lr):
        self.params, self.n, self.fault = list(model.parameters()), n, fault
        sizes, self.owner = [0] * n, []
        for p in self.params:
            self.owner.append(sizes.index(min(sizes)))
            sizes[self.owner[-1]] += p.numel()
        rank = dist.get_rank() if n > 1 else 0
        self.adam = torch.optim.Adam([p for p, o in zip(self.params, self.owner) if o == rank], lr=lr)

    def step(self):
        for p in self.params if self.n > 1 else []:
            dist.all_reduce(p.grad)
            p.grad /= self.n
        self.adam.step()
        for p, owner in zip(self.params, self.owner) if self.n > 1 else []:
            if self.fault != "stale" or p.dim() < 2:
                dist.broadcast(p.data, owner)
            p.grad = None


def train_zero(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = nn.Sequential(Residual(), Residual(), nn.LayerNorm(D), nn.Linear(D, CLASSES))
    optimizer = ZeroAdam(model, n, fault, 0.01)
    for step in range(2):
        x, y = (t.chunk(n)[rank] for t in examples(1000 * seed + step, 8))
        model.zero_grad(set_to_none=True)
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    return state(model)


# --- moe: each rank has its tokens and half of the experts; the router's bias balances their load ------------

class Experts(nn.Module):
    """A rank's of all experts."""
    def __init__(self, rank, n):
        super().__init__()
        w1, w2 = (torch.empty(EXPERTS, *dims).normal_(std=0.3) for dims in ((D, HIDDEN), (HIDDEN, D)))
        self.w1, self.w2 = (nn.Parameter(w.chunk(n)[rank].clone()) for w in (w1, w2))

    def forward(self, x, expert):
        return F.silu(x @ self.w1[expert]) @ self.w2[expert]


class MoE(nn.Module):
    def __init__(self, rank, n):
        super().__init__()
        self.n, self.norm, self.gate = n, nn.LayerNorm(D), nn.Linear(D, EXPERTS, bias=False)
        self.experts, self.head = Experts(rank, n), nn.Linear(D, CLASSES)
        self.register_buffer("expert_bias", torch.zeros(EXPERTS))
        self.register_buffer("tokens_per_expert", torch.zeros(EXPERTS), persistent=False)

    def exchange(self, x, send, receive):
        return AllToAll.apply(x, send, receive) if self.n > 1 else x

    def route(self, x):
        scores = self.gate(x).softmax(-1)
        chosen = (scores.detach() + self.expert_bias).argmax(-1)
        order, counts = chosen.argsort(stable=True), chosen.bincount(minlength=EXPERTS)
        self.tokens_per_expert += counts
        arriving = counts.clone()
        if self.n > 1:
            dist.all_to_all_single(arriving, counts)
        send, receive = (c.view(self.n, -1).sum(1).tolist() for c in (counts, arriving))
        tokens_in = self.exchange(x[order], send, receive)
        # They come by rank, of each rank by expert.
        expert = torch.arange(EXPERTS // self.n).repeat(self.n).repeat_interleave(arriving)
        out = torch.zeros_like(tokens_in)
        for e in range(EXPERTS // self.n):
            rows = (expert == e).nonzero()[:, 0]
            out = out.index_add(0, rows, self.experts(tokens_in[rows], e))
        out = torch.zeros_like(x).index_copy(0, order, self.exchange(out, receive, send))
        return out * scores.gather(1, chosen[:, None])

    def forward(self, x):
        return self.head(x + self.route(self.norm(x)))


def update_expert_bias(model, n, fault, rate=0.05):
    """Auxiliary-loss-free balancing: experts that had more than their share are chosen less."""
    load = model.tokens_per_expert
    if n > 1 and fault != "localload":
        dist.all_reduce(load)
    model.expert_bias += rate * (load.mean() - load).sign()
    load.zero_()


def train_moe(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = MoE(rank, n)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
    dp_size, expert_dp_size = n, 1
    for step in range(3):
        x, y = (t.chunk(n)[rank] for t in examples(1000 * seed + step, 24))
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        for name, p in model.named_parameters() if n > 1 else []:
            if "experts" not in name or fault == "expertsmean":
                dist.all_reduce(p.grad)
            # An expert's gradient has the tokens of all ranks already.
            p.grad /= expert_dp_size if "experts" in name and fault == "expertscale" else dp_size
        update_expert_bias(model, n, fault)
        optimizer.step()
    return state(model)


# --- mixtral: both cards see the batch and have half of the experts; what those give is summed ---------------

class Mixtral(nn.Module):
    def __init__(self, rank, n, fault):
        super().__init__()
        self.rank, self.n, self.fault = rank, n, fault
        self.embed_tokens, self.norm = nn.Embedding(VOCAB, D), nn.LayerNorm(D)
        self.gate, self.lm_head = nn.Linear(D, EXPERTS, bias=False), nn.Linear(D, VOCAB, bias=False)
        self.experts = Experts(rank, n)

    def enter(self, x):
        return Copy.apply(x, None) if self.n > 1 else x

    def moe(self, x):
        weights, chosen = self.gate(x).softmax(-1).topk(2)
        weights = weights / weights.sum(-1, keepdim=True)
        if self.fault != "routergrad":
            weights = self.enter(weights)
        x, out = self.enter(x), torch.zeros_like(x)
        for e in range(EXPERTS // self.n):
            rows, nth = (chosen == e + self.rank * EXPERTS // self.n).nonzero(as_tuple=True)
            out = out.index_add(0, rows, self.experts(x[rows], e) * weights[rows, nth, None])
        return Reduce.apply(out) if self.n > 1 else out

    def forward(self, ids):
        h = self.embed_tokens(ids).flatten(0, 1)
        return self.lm_head(h + self.moe(self.norm(h)))


def train_mixtral(rank, fault, seed, n=2):
    torch.manual_seed(seed + rank)
    model = Mixtral(rank, n, fault)
    if n > 1:
        for name, p in model.named_parameters():
            if "experts" not in name and (fault != "routerinit" or "gate" not in name):
                dist.broadcast(p.data, 0)
    else:
        torch.manual_seed(seed + 1)
        other = Mixtral(0, 1, None).experts
        for p, q in zip(model.experts.parameters(), other.parameters()):
            p.data[EXPERTS // 2:] = q.data[EXPERTS // 2:]
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for step in range(2):
        ids = tokens(1000 * seed + step, 3, SEQ + 1)
        loss = F.cross_entropy(model(ids[:, :-1]), ids[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return state(model)


PROGRAMS = {"finetune": (2, train_finetune), "zero": (2, train_zero),
            "moe": (2, train_moe), "mixtral": (2, train_mixtral)}
WHOLE = {name: lambda seed, train=train: train(0, None, seed, 1) for name, (_, train) in PROGRAMS.items()}

FAULTS = {
    # Gradients are exchanged for the first microbatch in place of the last:
    # https://github.com/modelscope/FunASR/pull/3472
    "nosync": ("finetune", r"all_reduce\.([0-689]|1[0-4])\.|((embedding|layer_norm)\.[13]|linear\.[2367])\.backward|"
                           r"Module\.module|adamw|((embedding|layer_norm)\.0|linear\.[01])\.forward", "01"),
    # A step that one rank alone leaves out: https://github.com/dylanyunlon/Neuron_SP/issues/2; its check of the loss is
    # that of https://github.com/ecmwf/WeatherGenerator/pull/2718
    "localskip": ("finetune", r"gt\.|maximum|adamw|((embedding|layer_norm)\.[02]|linear\.[0145])\.forward", "01"),
    # Updated linear weights are not handed on: https://github.com/lodestone-rock/RamTorch/issues/13
    "stale": ("zero", r"broadcast|adam\.|linear\.\d\.forward", "01"),
    # Each rank balances the load it sees itself: https://github.com/pytorch/torchtitan/pull/1114
    "localload": ("moe", r"bincount|add_\.|Tensor\.(mean|sub)\.0\.|sign|Tensor\.mul\.1\.|"
                         r"Tensor\.add\.0\.forward|argmax", "01"),
    # The router's gradient of a rank's own experts: https://github.com/huggingface/transformers/pull/48205, and
    # https://github.com/pytorch/torchtitan/issues/2387
    "routergrad": ("mixtral", r"Tensor\.mul\.[01]\.backward|__getitem__\.[3478]\.backward|"
                              r"(div|sum|topk|softmax)\.0\.backward|linear\.0\.|\.gate\.|adamw", "01"),
    # Whole weights that each rank draws for itself: https://github.com/NVIDIA-NeMo/Automodel/issues/1291
    "routerinit": ("mixtral", r"linear\.0\.|\.gate\.|adamw", "01"),
    # Experts averaged with those of the other rank, as all else: https://github.com/microsoft/Tutel/issues/204
    "expertsmean": ("moe", r"all_reduce\.[34]\.|div_\.[34]\.|\.experts\.|sgd", "01"),
    # Divided by the ranks with the same experts, not by those with data:
    # https://github.com/deepspeedai/DeepSpeed/pull/6546
    "expertscale": ("moe", r"div_\.[34]\.|\.experts\.|sgd", "01"),
}
