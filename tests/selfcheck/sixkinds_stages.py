"""Programs that are split into stages, whose first and last share the table of words: a pipeline of micro batches,
and one under data parallel groups with a sharded optimizer; and what is reported to go wrong in such.

The whole_NAME(seed) give what one process has that has all stages and one table.
"""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

from sixkinds_kit import choose, mesh, state

D, VOCAB, LENGTH = 16, 22, 6


# --- pipe: two stages and three micro batches; the head's gradients of the table are computed at the end ----

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.qkv, self.proj = nn.LayerNorm(D), nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.ln_2 = nn.LayerNorm(D)
        self.fc, self.out = nn.Linear(D, 4 * D), nn.Linear(4 * D, D)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (4, -1)).transpose(1, 2) for t in self.qkv(self.ln_1(x)).chunk(3, -1))
        mask = torch.full((LENGTH, LENGTH), float("-inf")).triu(1)
        attn = (q @ k.transpose(2, 3) * 0.5 + mask).softmax(-1)
        x = x + self.proj((attn @ v).transpose(1, 2).flatten(2))
        return x + self.out(F.gelu(self.fc(self.ln_2(x))))


class DeferredHead(torch.autograd.Function):
    """Logits, of which only the gradient of the input is computed at once."""
    @staticmethod
    def forward(ctx, x, weight, later):
        ctx.save_for_backward(x, weight)
        ctx.later = later
        return x @ weight.t()

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        ctx.later.append((x.detach(), g))
        return g @ weight, None, None


class Stage(nn.Module):
    def __init__(self, seed, first):
        super().__init__()
        torch.manual_seed(seed + (0 if first else 77))
        self.word_embeddings = nn.Embedding(VOCAB, D)
        self.word_embeddings.weight.data.mul_(0.3)
        if first:
            self.position, self.layer0 = nn.Parameter(0.1 * torch.randn(LENGTH, D)), Block()
        else:
            self.layer1, self.ln_f = Block(), nn.LayerNorm(D)
        self.first, self.later = first, []

    def forward(self, x):
        if self.first:
            return self.layer0(self.word_embeddings(x) + self.position)
        return DeferredHead.apply(self.ln_f(self.layer1(x)), self.word_embeddings.weight, self.later)

    def finish_embedding_wgrad_compute(self):
        weight = self.word_embeddings.weight
        for x, g in self.later:
            wgrad = g.flatten(0, 1).t() @ x.flatten(0, 1)
            weight.grad = wgrad if weight.grad is None else weight.grad + wgrad
        self.later.clear()


def text_of(seed, step, n):
    text = choose(1000 * seed + step, VOCAB, n, LENGTH + 1)
    return text[:, :-1], text[:, 1:]


def run_micros(stage, rank, tokens, labels, micros):
    """All forward, then all backward."""
    done = []
    for t, y in zip(tokens.chunk(micros), labels.chunk(micros)):
        if stage.first:
            done.append((None, stage(t)))
            dist.send(done[-1][1].detach(), 1)
        else:
            x = torch.empty(len(t), LENGTH, D)
            dist.recv(x, 0)
            x.requires_grad_()
            done.append((x, F.cross_entropy(stage(x).flatten(0, 1), y.flatten()) / micros))
    for x, out in done:
        if stage.first:
            g = torch.empty_like(out)
            dist.recv(g, 1)
            out.backward(g)
        else:
            out.backward()
            dist.send(x.grad, 0)


def clip_stages(stage, fault, limit=0.5):
    """The norm of the model, in which a shared weight counts once."""
    shared = [] if stage.first or fault == "tiednorm" else [stage.word_embeddings.weight]
    square = sum(p.grad.pow(2).sum() for p in stage.parameters() if not any(p is s for s in shared))
    dist.all_reduce(square)
    scale = (limit / square.sqrt()).clamp(max=1.0)
    for p in stage.parameters():
        p.grad.mul_(scale)


def train_pipe(rank, fault, seed, micros=3):
    stage = Stage(seed, rank == 0)
    table = stage.word_embeddings.weight
    dist.broadcast(table.data, 0)
    opt = torch.optim.SGD(stage.parameters(), lr=0.3, momentum=0.9)
    for step in range(2):
        opt.zero_grad(set_to_none=True)
        run_micros(stage, rank, *text_of(seed, step, 6), micros)
        if fault != "tiedlate":
            stage.finish_embedding_wgrad_compute()
        if table.grad is None:
            table.grad = torch.zeros_like(table)
        if fault != "tiednone":
            dist.all_reduce(table.grad)
        if fault == "tiedlate":
            stage.finish_embedding_wgrad_compute()
        clip_stages(stage, fault)
        opt.step()
    return state(stage)


def whole_pipe(seed):
    first, last = Stage(seed, True), Stage(seed, False)
    last.word_embeddings = first.word_embeddings
    params = list(dict.fromkeys([*first.parameters(), *last.parameters()]))
    opt = torch.optim.SGD(params, lr=0.3, momentum=0.9)
    for step in range(2):
        tokens, labels = text_of(seed, step, 6)
        opt.zero_grad(set_to_none=True)
        logits = F.linear(last.ln_f(last.layer1(first(tokens))), first.word_embeddings.weight)
        F.cross_entropy(logits.flatten(0, 1), labels.flatten()).backward()
        norm = sum(p.grad.pow(2).sum() for p in params).sqrt()
        for p in params:
            p.grad.mul_((0.5 / norm).clamp(max=1.0))
        opt.step()
    return state(first, last)


# --- pipedp: two pipelines of two stages; the optimizer of a stage is sharded over the pipelines ------------

class Encoder(nn.Module):
    """The table comes first in the flat buffer."""
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(VOCAB, D)
        self.rnn = nn.GRU(D, D, batch_first=True)

    def forward(self, tokens):
        return self.rnn(self.table(tokens))[0]


class Decoder(nn.Module):
    """The table comes last in the flat buffer."""
    def __init__(self):
        super().__init__()
        self.rnn2, self.norm = nn.GRU(D, D, batch_first=True), nn.LayerNorm(D)
        self.table = nn.Embedding(VOCAB, D)

    def forward(self, x):
        return F.linear(self.norm(x + self.rnn2(x)[0]), self.table.weight)


class DistributedOptimizer:
    """SGD with momentum of the rank's half of the flat buffers."""
    def __init__(self, module, group, ranks, lr=0.2):
        self.params, self.group, self.ranks, self.lr = list(module.parameters()), group, ranks, lr
        size = sum(p.numel() for p in self.params)
        size += size % len(ranks)
        self.grads, self.weights = torch.zeros(size), torch.zeros(size)
        self.views, at = {}, 0
        for p in self.params:
            self.weights[at:at + p.numel()] = p.data.flatten()
            p.data = self.weights[at:at + p.numel()].view_as(p)
            self.views[p] = self.grads[at:at + p.numel()].view_as(p)
            at += p.numel()
        self.index = dist.get_rank(group)
        self.momentum = torch.zeros(size // len(ranks))

    def take_over(self):
        for p in self.params:
            self.views[p].copy_(p.grad)
            p.grad = None

    def reduce_scatter(self):
        """The mean of the rank's own half; the other half stays the rank's own."""
        for i, (half, dst) in enumerate(zip(self.grads.chunk(len(self.ranks)), self.ranks)):
            got = half.clone()
            dist.reduce(got, dst, group=self.group)
            if i == self.index:
                half.copy_(got / len(self.ranks))

    def step(self):
        half = self.weights.chunk(len(self.ranks))[self.index]
        self.momentum.mul_(0.9).add_(self.grads.chunk(len(self.ranks))[self.index])
        half.sub_(self.momentum, alpha=self.lr)
        parts = [torch.empty_like(half) for _ in self.ranks]
        dist.all_gather(parts, half.clone(), group=self.group)
        self.weights.copy_(torch.cat(parts))


def stages_of(seed):
    torch.manual_seed(seed)
    encoder, decoder = Encoder(), Decoder()
    encoder.table.weight.data.mul_(0.3)
    decoder.table.weight.data.copy_(encoder.table.weight.data)
    return encoder, decoder


def train_pipedp(rank, fault, seed):
    """Ranks 0 and 1 have the first stage, 2 and 3 the last."""
    dp_group, table_group = mesh(rank, [0, 1], [2, 3]), mesh(rank, [0, 2], [1, 3])
    stage = stages_of(seed)[rank // 2]
    opt = DistributedOptimizer(stage, dp_group, [0, 1] if rank < 2 else [2, 3])
    for step in range(2):
        tokens, labels = (t.chunk(2)[rank % 2] for t in text_of(seed, step, 8))
        if rank < 2:
            out = stage(tokens)
            dist.send(out.detach().contiguous(), rank + 2)
            g = torch.empty(4, LENGTH, D)
            dist.recv(g, rank + 2)
            out.backward(g)
        else:
            x = torch.empty(4, LENGTH, D)
            dist.recv(x, rank - 2)
            x.requires_grad_()
            F.cross_entropy(stage(x).flatten(0, 1), labels.flatten()).backward()
            dist.send(x.grad.contiguous(), rank - 2)
        opt.take_over()
        if fault == "tieddist":
            opt.reduce_scatter()
        dist.all_reduce(opt.views[stage.table.weight], group=table_group)
        if fault != "tieddist":
            opt.reduce_scatter()
        opt.step()
    return state(stage)


def whole_pipedp(seed):
    encoder, decoder = stages_of(seed)
    decoder.table = encoder.table
    opt = torch.optim.SGD(dict.fromkeys([*encoder.parameters(), *decoder.parameters()]), lr=0.2, momentum=0.9)
    for step in range(2):
        tokens, labels = text_of(seed, step, 8)
        opt.zero_grad()
        F.cross_entropy(decoder(encoder(tokens)).flatten(0, 1), labels.flatten()).backward()
        opt.step()
    return state(encoder, decoder, grads=False)


PROGRAMS = {"pipe": (2, train_pipe), "pipedp": (4, train_pipedp)}
WHOLE = {"pipe": whole_pipe, "pipedp": whole_pipedp}

FAULTS = {
    # (5) Two copies of the table, each with its own gradient: https://github.com/uw-syfi/piper/issues/13
    "tiednone": ("pipe", r"embedding\.\d\.backward|word_embeddings|matmul\.1[2-4]\.|sgd", "01"),
    # (5) What was put off is computed behind the all-reduce: https://github.com/NVIDIA/Megatron-LM/issues/1012
    "tiedlate": ("pipe", r"all_reduce\.0\.|matmul\.1[2-4]\.|add\.(9|10|11)\.|word_embeddings|sgd", "01"),
    # (5) The norm counts both copies: https://github.com/NVIDIA/Megatron-LM/pull/7227
    "tiednorm": ("pipe", r"all_reduce\.1\.|(pow|sum)\.0\.|sqrt|clamp|rdiv|mul_", "01"),
    # (5) Halves that were reduced are added to ones that were not: https://github.com/NVIDIA/Megatron-LM/issues/844
    "tieddist": ("pipedp", r"Distributed\.(all_)?reduce|copy_|(add|mul|sub)_\.|all_gather", "0123"),
}
