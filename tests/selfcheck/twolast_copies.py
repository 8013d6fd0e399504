"""Programs whose ranks have copies of a network and each a part of the batch: a trainer as fairseq's with experts
on each rank, DistributedDataParallel as accelerate has it, experts that are parted between the ranks; and what is
reported of such.

Each train(rank, fault, seed, n) is a user's program; n = 1 is one process that has the whole batch.
"""
import contextlib

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

from twolast_split import D, VOCAB, state

EXPERTS = 4


def batch(seed, rows, inputs=D, classes=5):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(rows, inputs, generator=g), torch.randint(classes, (rows,), generator=g)


# --- fairseq: gradients of several sentences are summed in a flat buffer, then divided by their tokens ------

class MoeFeedForward(nn.Module):
    """Two experts, of which each rank has both."""
    def __init__(self):
        super().__init__()
        self.norm, self.gate = nn.LayerNorm(D), nn.Linear(D, 2, bias=False)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(D, 2 * D), nn.ReLU(), nn.Linear(2 * D, D))
                                     for _ in range(2))
        for p in self.experts.parameters():
            p.expert = True

    def forward(self, x):
        h = self.norm(x)
        p = self.gate(h).softmax(-1)
        return x + sum(p[..., i:i + 1] * expert(h) for i, expert in enumerate(self.experts))


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.layer, self.out = nn.Embedding(VOCAB, D), MoeFeedForward(), nn.Linear(D, VOCAB)

    def forward(self, t):
        return self.out(self.layer(self.embed(t)))


class Trainer:
    def __init__(self, n, fault):
        self.n, self.fault, self.model, self.seen = n, fault, Translator(), torch.zeros(())
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.0, betas=(0.9, 0.98))

    def all_reduce_grads(self):
        for expert in False, True:
            grads = [p.grad for p in self.model.parameters() if hasattr(p, "expert") == expert]
            buffer = torch.cat([g.flatten() for g in grads])
            if self.n > 1 and not (expert and self.fault == "expskip"):
                dist.all_reduce(buffer)
            for g, part in zip(grads, buffer.split([g.numel() for g in grads])):
                g.copy_(part.view_as(g))

    def learning_rate(self):
        """Falls as the epoch goes on, which is as far as the rank that has seen the most."""
        progress = self.seen / 100
        if self.n > 1 and self.fault != "lrrank":
            dist.all_reduce(progress, dist.ReduceOp.MAX)
        return 0.02 * (1 - progress.item())

    def train_step(self, samples, longest=None):
        """longest: what one process that has all shares is to take for the tokens of the longest."""
        self.optimizer.zero_grad()
        sample_size = torch.zeros(())
        for t in samples:
            loss = F.cross_entropy(self.model(t[:-1]), t[1:], reduction="sum")
            loss.backward()
            sample_size += len(t) - 1
        self.seen += longest or sample_size
        if self.n > 1:
            dist.all_reduce(sample_size)
        self.all_reduce_grads()
        for p in self.model.parameters():
            p.grad.mul_(1 / sample_size)
        nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
        self.optimizer.param_groups[0]["lr"] = self.learning_rate()
        self.optimizer.step()


def train_fairseq(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    trainer = Trainer(n, fault)
    lengths = [[9, 7], [6, 4]]   # of a rank's sentences
    for step in range(3):
        g = torch.Generator().manual_seed(100 * seed + step)
        shares = [[torch.randint(VOCAB, (k,), generator=g) for k in share] for share in lengths]
        if n > 1:
            trainer.train_step(shares[rank])
        else:
            trainer.train_step(sum(shares, []), longest=sum(lengths[0]) - 2)
    return state(trainer.model)


# --- accelerate: gradients of two micro batches are accumulated, a run goes on from a checkpoint ------------

def checkpoint(model, seed, steps):
    """An Adam state as a run has it after some steps."""
    g = torch.Generator().manual_seed(seed)
    return {i: {"step": torch.tensor(float(steps)),
                "exp_avg": 0.01 * torch.randn(p.shape, generator=g),
                "exp_avg_sq": 1e-4 + 1e-3 * torch.rand(p.shape, generator=g)}
            for i, p in enumerate(model.parameters())}


def train_accelerate(rank, fault, seed, n=2, accumulation=2):
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(D, 2 * D), nn.LayerNorm(2 * D), nn.Tanh(), nn.Linear(2 * D, 5))
    model = DistributedDataParallel(net) if n > 1 else net
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1)
    saved = optimizer.state_dict()
    saved["state"] = checkpoint(net, seed, 1 if fault == "stalestep" and rank == 1 else 40)
    optimizer.load_state_dict(saved)
    for step in range(3):
        for micro in range(accumulation):
            x, y = (t.chunk(n)[rank] for t in batch(1000 * seed + 10 * step + micro, 8))
            last = accumulation if fault == "nosync" and step == 1 else accumulation - 1
            sync_gradients = micro == last or n == 1
            with contextlib.nullcontext() if sync_gradients else model.no_sync():
                loss = F.cross_entropy(model(x), y) / accumulation
                loss.backward()
        optimizer.step()
        if step < 2:
            optimizer.zero_grad()
    return state(net)


# --- parted: each rank has half of the experts, tokens go to them and back ---------------------------------

def exchanged(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    dist.all_to_all_single(out, x)
    return out


class AllToAll(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return exchanged(x)

    @staticmethod
    def backward(ctx, g):
        return exchanged(g)


class MoeLayer(nn.Module):
    """Sends each token to its first expert; of an expert a rank fills as many places as it has tokens."""
    def __init__(self, rank, n, seed):
        super().__init__()
        self.n = n
        self.router = nn.Linear(D, EXPERTS, bias=False)
        mine = range(rank * EXPERTS // n, (rank + 1) * EXPERTS // n)
        self.experts = nn.ModuleDict()
        for e in mine:
            torch.manual_seed(10 * seed + e)   # experts are to differ
            self.experts[str(e)] = nn.Sequential(nn.Linear(D, 2 * D), nn.GELU(), nn.Linear(2 * D, D))

    def forward(self, x):
        p = self.router(x).softmax(-1)
        top, which = p.max(-1)
        chosen = F.one_hot(which, EXPERTS).to(x.dtype)
        sent = torch.einsum("te,td->etd", chosen, x)
        if self.n > 1:
            sent = AllToAll.apply(sent)
        parts = sent.unflatten(0, (self.n, -1))
        done = torch.stack([f(parts[:, i]) for i, f in enumerate(self.experts.values())], 1).flatten(0, 1)
        if self.n > 1:
            done = AllToAll.apply(done)
        return x + torch.einsum("te,etd->td", chosen * top[:, None], done)


class Classifier(nn.Module):
    def __init__(self, rank, n, seed):
        super().__init__()
        self.stem, self.norm, self.head = nn.Linear(D, D), nn.LayerNorm(D), nn.Linear(D, 5)
        torch.manual_seed(seed + rank)
        self.moe = MoeLayer(rank, n, seed)

    def forward(self, x):
        return self.head(self.norm(self.moe(torch.tanh(self.stem(x)))))


def train_parted(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = Classifier(rank, n, seed)
    for name, p in model.named_parameters():
        if n > 1 and not name.startswith("moe." if fault == "routerinit" else "moe.experts."):
            dist.broadcast(p.data, 0)
    experts = "moe." if fault == "routerexpert" else "moe.experts."
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
    for step in range(3):
        x, y = (t.chunk(n)[rank] for t in batch(100 * seed + step, 16))
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        for name, p in model.named_parameters():
            if n > 1:
                if not name.startswith(experts) or fault == "expworld":
                    dist.all_reduce(p.grad)
                # An expert's gradient is already the sum over the tokens of all ranks.
                if not name.startswith(experts) or fault != "expscale":
                    p.grad /= n
        optimizer.step()
    return state(model)


PROGRAMS = {"fairseq": (2, train_fairseq), "accelerate": (2, train_accelerate), "parted": (2, train_parted)}
WHOLE = {n: lambda seed, f=f: f(0, None, seed, 1) for n, (_, f) in PROGRAMS.items()}

FAULTS = {
    # Expert gradients averaged over the wrong group.
    # Those of experts that each rank has are not reduced: https://github.com/facebookresearch/fairseq/issues/4220
    "expskip": ("fairseq", r"linear\.([1-4]|[7-9]|10)\.|\.experts\.|flatten\.([6-9]|1[0-3])\.|cat\.1\.|split\.1\.|"
                r"(view_as|copy_)\.([6-9]|1[0-3])\.|mul_\.([4-9]|1[01])\.|\bnorm\.([4-9]|1[0-4])\.|all_reduce\.1\.|"
                r"adam", "01"),
    # Those of the rank's own experts are averaged with the rest: https://github.com/microsoft/Tutel/issues/161
    "expworld": ("parted", r"all_reduce\.([7-9]|1[0-4])\.|div_\.([7-9]|1[0-4])\.|linear\.[2-5]\.|\.experts\.|sgd",
                 "01"),
    # Not divided by the ranks whose tokens they are of: https://github.com/deepspeedai/DeepSpeed/pull/6546
    "expscale": ("parted", r"linear\.[2-5]\.|\.experts\.|all_to_all_single\.2\.|sgd", "01"),
    # Replicas that drift by one optimizer step.
    # The learning rate is of the rank's own progress: https://github.com/karpathy/nanochat/pull/857
    "lrrank": ("fairseq", r"\bdiv\.0\.|add_|adam|embedding\.0\.forward", "01"),
    # Micro batches end before one for which gradients are reduced: https://github.com/huggingface/picotron/pull/5
    "nosync": ("accelerate", r"(linear|layer_norm)\.\d\.backward|parameters_grad|adamw|linear\.0\.forward", "01"),
    # A rank goes on with a stale count of steps: https://github.com/NVIDIA/TransformerEngine/issues/1986
    "stalestep": ("accelerate", r"\bto\.|adamw|linear\.0\.forward", "1"),
    # A router that differs by rank.
    # Never the same at all: https://github.com/hpcaitech/ColossalAI/pull/421
    "routerinit": ("parted", r"linear\.1\.|\.router\.|broadcast|sgd", "01"),
    # Taken for an expert, so not reduced: https://github.com/microsoft/Tutel/issues/293
    "routerexpert": ("parted", r"linear\.1\.|\.router\.|div_\.6\.|sgd", "01"),
}
