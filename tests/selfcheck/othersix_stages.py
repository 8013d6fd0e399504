"""Pipelines of two stages whose first embeds with the weight that the last has for its words; and what is reported to
go wrong with that weight: micro-batches with a late gradient and clipping, buffers that data parallel ranks split.

Each train(rank, fault, seed, n): with n = 1 what one process does that has the whole model and batch.
"""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

from othersix_kit import groups, randint

D, VOCAB = 12, 18


class Stage(nn.Module):
    """The layers of a stage in a pipeline of two, or of both."""
    def __init__(self, first, last):
        super().__init__()
        self.first, self.last = first, last
        wte, blocks = nn.Embedding(VOCAB, D).weight.detach() * 0.5, [nn.Linear(D, D) for _ in range(4)]
        if first:
            self.wte = nn.Parameter(wte.clone())
            self.block0, self.block1 = blocks[:2]
        if last:
            self.block2, self.block3 = blocks[2:]
            self.norm = nn.LayerNorm(D)
            # A module, so that its weight is the last of the stage's parameters.
            self.lm_head = nn.Linear(D, VOCAB, bias=False)
            self.lm_head.weight = self.wte if first else nn.Parameter(wte.clone())

    def forward(self, x):
        if self.first:
            x = F.embedding(x, self.wte)
            x = x + self.block1(F.gelu(self.block0(x)))
        if self.last:
            x = self.norm(x + self.block3(torch.tanh(self.block2(x))))
        return x


def tied(stage):
    return stage.wte if stage.first else stage.lm_head.weight


def named(stage):
    got = {n: p.detach().clone() for n, p in stage.named_parameters() if n not in ("wte", "lm_head.weight")}
    got["wte"] = tied(stage).detach().clone()
    return got


# --- pipe: micro-batches one after another; the gradient of the words waits till the pipeline is empty ------------

class LateLogits(torch.autograd.Function):
    """h @ w.T, whose gradient of w is computed later from what is kept in late."""
    @staticmethod
    def forward(ctx, h, w, late):
        ctx.save_for_backward(h, w)
        ctx.late = late
        return h @ w.t()

    @staticmethod
    def backward(ctx, g):
        h, w = ctx.saved_tensors
        ctx.late.append((h.detach().flatten(0, -2), g.flatten(0, -2)))
        return g @ w, None, None


def finish_embedding_wgrad(w, late):
    for h, g in late:
        grad = g.t() @ h
        w.grad = grad if w.grad is None else w.grad + grad
    late.clear()


def clip(stage, n, fault, limit=0.5):
    """By the norm of the whole model, of which the tied weight is one."""
    counted = [p.grad for name, p in stage.named_parameters() if name != "lm_head.weight" or fault == "tiednorm"]
    square = sum(g.norm() ** 2 for g in counted)
    if n > 1:
        dist.all_reduce(square)
    factor = (limit / (square.sqrt() + 1e-6)).clamp(max=1.0)
    for p in stage.parameters():
        p.grad.mul_(factor)


def train_pipe(rank, fault, seed, n=2, micro=3):
    torch.manual_seed(seed)
    stage = Stage(n == 1 or rank == 0, n == 1 or rank == 1)
    opt = torch.optim.SGD(stage.parameters(), lr=0.2, momentum=0.9, weight_decay=0.02)
    for s in range(2):
        t = randint(1000 * seed + s, VOCAB, 2 * micro, 6)
        opt.zero_grad()
        late, sent, returned = [], [], []
        for m in t.chunk(micro):
            x = m[:, :-1]
            if n > 1 and rank == 1:
                x = torch.empty(2, 5, D)
                dist.recv(x, 0)
                x.requires_grad_()
            h = stage(x)
            if stage.last:
                logits = LateLogits.apply(h, stage.lm_head.weight, late)
                (F.cross_entropy(logits.flatten(0, 1), m[:, 1:].flatten()) / micro).backward()
                if n > 1:
                    returned.append((dist.isend(x.grad, 0), x.grad))
            else:
                dist.send(h.detach(), 1)
                sent.append(h)
        for h in sent:
            g = torch.empty_like(h)
            dist.recv(g, 1)
            h.backward(g)
        for request, _ in returned:
            request.wait()
        if fault != "latewgrad":
            finish_embedding_wgrad(tied(stage), late)
        if n > 1:
            # The late gradient may be all that there is on the last stage.
            if tied(stage).grad is None:
                tied(stage).grad = torch.zeros_like(tied(stage))
            dist.all_reduce(tied(stage).grad)
        if fault == "latewgrad":
            finish_embedding_wgrad(tied(stage), late)
        clip(stage, n, fault)
        opt.step()
    return named(stage)


# --- pipedp: two pipelines, whose ranks of a stage split its flat buffer and step a half each ---------------------

class FlatBuffer:
    """Weights and gradients of a stage, each after the other; a rank steps its half of them."""
    def __init__(self, stage, part, n):
        self.params, self.part, self.n = list(stage.parameters()), part, n
        # Adam's state is of the own half.
        self.shard = nn.Parameter(self.weights().chunk(n)[part].clone())
        self.opt = torch.optim.Adam([self.shard], lr=0.01, eps=1e-4)

    def weights(self):
        flat = torch.cat([p.detach().flatten() for p in self.params])
        return F.pad(flat, (0, -len(flat) % 2))

    def collect(self):
        grad = torch.cat([p.grad.flatten() for p in self.params])
        self.grad = F.pad(grad, (0, -len(grad) % 2))
        for p in self.params:
            p.grad = None

    def slice_of(self, param):
        at = sum(p.numel() for p in self.params[:next(i for i, p in enumerate(self.params) if p is param)])
        return self.grad[at:at + param.numel()]

    def reduce_scatter(self, group):
        """Of the average of all, only the own half is kept; gloo has no reduce_scatter."""
        if self.n > 1:
            total = self.grad / self.n
            dist.all_reduce(total, group=group)
            self.grad.chunk(self.n)[self.part].copy_(total.chunk(self.n)[self.part])

    def step(self, group):
        self.shard.grad = self.grad.chunk(self.n)[self.part].clone()
        self.opt.step()
        parts, at = [self.shard.detach()], 0
        if self.n > 1:
            parts = [torch.empty_like(self.shard) for _ in range(self.n)]
            dist.all_gather(parts, self.shard.detach(), group=group)
        flat = torch.cat(parts)
        with torch.no_grad():
            for p in self.params:
                p.copy_(flat[at:at + p.numel()].view_as(p))
                at += p.numel()


def train_pipedp(rank, fault, seed, n=2):
    dp = pp = None
    if n > 1:
        dp, pp = groups(rank, [0, 1], [2, 3]), groups(rank, [0, 2], [1, 3])
    torch.manual_seed(seed)
    stage = Stage(n == 1 or rank < 2, n == 1 or rank >= 2)
    buffer = FlatBuffer(stage, rank % 2 if n > 1 else 0, n)

    def sum_of_stages():
        if n > 1:
            slot = buffer.slice_of(tied(stage))
            if fault == "tiedoffset":
                slot = buffer.grad[:len(slot)]
            dist.all_reduce(slot, group=pp)

    for s in range(3):
        t = randint(1000 * seed + s, VOCAB, 6, 6).chunk(n)[rank % 2 if n > 1 else 0]
        x = t[:, :-1]
        if not stage.first:
            x = torch.empty(3, 5, D)
            dist.recv(x, rank - 2)
            x.requires_grad_()
        h = stage(x)
        if stage.last:
            F.cross_entropy(stage.lm_head(h).flatten(0, 1), t[:, 1:].flatten()).backward()
            if n > 1:
                dist.send(x.grad, rank - 2)
        else:
            dist.send(h.detach(), rank + 2)
            g = torch.empty_like(h)
            dist.recv(g, rank + 2)
            h.backward(g)
        buffer.collect()
        if fault != "tiedorder":
            sum_of_stages()
        buffer.reduce_scatter(dp)
        if fault == "tiedorder":
            sum_of_stages()
        buffer.step(dp)
    return named(stage)


PROGRAMS = {"pipe": (2, train_pipe), "pipedp": (4, train_pipedp)}
WHOLE = {n: lambda seed, f=f: f(0, None, seed, 1) for n, (_, f) in PROGRAMS.items()}

FAULTS = {
    # The late gradient of the words comes after the sum: https://github.com/NVIDIA/Megatron-LM/issues/1012
    "latewgrad": ("pipe", r"all_reduce|add|matmul|zeros_like|sgd|wte|lm_head|embedding", "01"),
    # Both copies of the tied weight count in the norm: https://github.com/NVIDIA/Megatron-LM/pull/7228
    "tiednorm": ("pipe", r"norm|pow|add|sum|all_reduce|sqrt|clamp|div|mul_", "01"),
    # The stages' sum comes behind the split of the buffers: https://github.com/NVIDIA/Megatron-LM/issues/844
    "tiedorder": ("pipedp", r"all_reduce|copy_|div|adam|chunk|all_gather|embedding|lm_head|wte", "0123"),
    # The stages' flat buffers have it at other offsets: https://github.com/NVIDIA/Megatron-LM/pull/6500
    "tiedoffset": ("pipedp", r"all_reduce|copy_|div|adam|chunk|all_gather|getitem|embedding|lm_head|wte", "0123"),
}
