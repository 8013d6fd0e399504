"""Pipelines whose first and last stage have the same embedding: one with replicas and a sharded optimizer as
Megatron has it, and one of recurrent layers whose last stage predicts two tokens.
"""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

from sixagain_kit import choose, group_of, state

D, VOCAB, SEQ, MICRO = 12, 20, 5, 3


# --- gpt2: two stages, two replicas of each; gradients in one buffer, of which a replica steps its half --------

class Block(nn.Module):
    """A mixer over tokens and one over channels."""
    def __init__(self):
        super().__init__()
        self.ln, self.mix = nn.LayerNorm(D), nn.Parameter(0.3 * torch.randn(SEQ, SEQ))
        self.fc, self.proj = nn.Linear(D, 2 * D), nn.Linear(2 * D, D)

    def forward(self, x):
        x = x + self.mix.tril() @ self.ln(x)
        return x + self.proj(F.gelu(self.fc(x)))


class Gpt2(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Parameter(0.3 * torch.randn(VOCAB, D)), nn.Parameter(0.1 * torch.randn(SEQ, D))
        self.h0, self.h1, self.ln_f = Block(), Block(), nn.LayerNorm(D)

    def keep(self, stage):
        for name in (("wpe", "h0"), ("h1", "ln_f"))[1 - stage]:
            delattr(self, name)
        return self

    def forward(self, x, labels=None, head=F.linear):
        """What the stages do that are here."""
        if hasattr(self, "h0"):
            x = self.h0(F.embedding(x, self.wte) + self.wpe)
        if hasattr(self, "h1"):
            x = F.cross_entropy(head(self.ln_f(self.h1(x)), self.wte).flatten(0, 1), labels.flatten())
        return x


class DeferredHead(torch.autograd.Function):
    """The logits, whose weight's gradient is left for when the pipeline drains."""
    todo = []

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight.t()

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        DeferredHead.todo.append((g, x.detach()))
        return g @ weight, None


class DistributedOptimizer:
    def __init__(self, model, stage, dp_rank, dp, tied, fault):
        self.stage, self.dp, self.tied, self.fault = stage, dp, tied, fault
        # On the last stage it is the head, and what comes last.
        self.params = sorted(model.parameters(), key=lambda p: stage == 1 and p is model.wte)
        sizes = [p.numel() for p in self.params]
        self.grads = torch.zeros(sum(sizes) + sum(sizes) % 2)
        counted = torch.ones_like(self.grads)
        half = len(self.grads) // 2
        self.mine, start = slice(dp_rank * half, (dp_rank + 1) * half), 0
        for p, n in zip(self.params, sizes):
            p.main_grad = self.grads[start:start + n].view_as(p)
            if p is model.wte:
                # The last stage's is the first one's: it counts once.
                counted[start:start + n] = 0.0 if stage == 1 and fault != "twicenorm" else 1.0
            start += n
        self.wte, self.counted = model.wte, counted[self.mine]
        self.shard = nn.Parameter(self.flat()[self.mine].clone())
        self.adamw = torch.optim.AdamW([self.shard], lr=0.03, weight_decay=0.1)

    def flat(self):
        flat = torch.cat([p.data.flatten() for p in self.params])
        return F.pad(flat, (0, len(self.grads) - len(flat)))

    def accumulate(self):
        for p in self.params:
            if p.grad is not None:
                p.main_grad += p.grad
                p.grad.zero_()

    def finish_embedding(self):
        for g, x in DeferredHead.todo:
            self.wte.main_grad += g.flatten(0, 1).t() @ x.flatten(0, 1)
        DeferredHead.todo.clear()

    def reduce_embedding(self):
        if self.fault == "otherbuffer":
            if self.wte.grad is None:
                self.wte.grad = torch.zeros_like(self.wte)
            dist.all_reduce(self.wte.grad, group=self.tied)
        else:
            dist.all_reduce(self.wte.main_grad, group=self.tied)

    def reduce_scatter(self):
        """Of the average of the replicas each has its half; gloo has no such collective."""
        total = self.grads / 2
        dist.all_reduce(total, group=self.dp)
        self.grads[self.mine] = total[self.mine]

    def step(self):
        if self.fault == "latewgrad":
            self.reduce_scatter()
            self.finish_embedding()
            self.reduce_embedding()
        elif self.fault == "scatterfirst":
            self.finish_embedding()
            self.reduce_scatter()
            self.reduce_embedding()
        else:
            self.finish_embedding()
            self.reduce_embedding()
            self.reduce_scatter()
        grad = self.grads[self.mine]
        square = (grad.square() * self.counted).sum()
        dist.all_reduce(square)
        self.shard.grad = grad * (0.3 / square.sqrt()).clamp(max=1.0)
        self.adamw.step()
        parts = [torch.empty_like(self.shard.data) for _ in range(2)]
        dist.all_gather(parts, self.shard.data, group=self.dp)
        whole = torch.cat(parts)
        for p, w in zip(self.params, whole[:sum(p.numel() for p in self.params)].split(
                [p.numel() for p in self.params])):
            p.data.copy_(w.view_as(p))
        self.grads.zero_()


def texts(seed, step, replica, micro):
    ids = choose(1000 * seed + 100 * step + 10 * replica + micro, VOCAB, 2, SEQ + 1)
    return ids[:, :-1], ids[:, 1:]


def train_gpt2(rank, fault, seed):
    stage, dp_rank = divmod(rank, 2)
    dp, pair = group_of(rank, [[0, 1], [2, 3]]), group_of(rank, [[0, 2], [1, 3]])
    torch.manual_seed(seed)
    model = Gpt2().keep(stage)
    opt = DistributedOptimizer(model, stage, dp_rank, dp, pair, fault)
    for s in range(3):
        outs = []
        for m in range(MICRO):
            ids, labels = texts(seed, s, dp_rank, m)
            if stage == 0:
                outs.append(model(ids))
                dist.send(outs[-1].detach(), rank + 2)
            else:
                x = torch.empty(2, SEQ, D)
                dist.recv(x, rank - 2)
                x.requires_grad_()
                outs.append((x, model(x, labels, DeferredHead.apply) / MICRO))
        for out in outs:
            if stage == 1:
                x, loss = out
                loss.backward()
                dist.send(x.grad, rank - 2)
            else:
                g = torch.empty_like(out)
                dist.recv(g, rank + 2)
                out.backward(g)
            opt.accumulate()
        opt.step()
    return state(model, grads=False)


def whole_gpt2(seed):
    torch.manual_seed(seed)
    model = Gpt2()
    opt = torch.optim.AdamW(model.parameters(), lr=0.03, weight_decay=0.1)
    for s in range(3):
        opt.zero_grad()
        for ids, labels in (texts(seed, s, r, m) for r in range(2) for m in range(MICRO)):
            (model(ids, labels) / (2 * MICRO)).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.3)
        opt.step()
    return state(model, grads=False)


# --- mtp: the last stage embeds the next token for the one after it, and has the same weight as its head --------

class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.lower = nn.Embedding(VOCAB, D), nn.GRU(D, D, batch_first=True)
        self.upper, self.join = nn.GRU(D, D, batch_first=True), nn.Linear(2 * D, D)

    def forward(self, x, ids):
        if hasattr(self, "lower"):
            x = self.lower(self.embed(x))[0]
        if not hasattr(self, "upper"):
            return x
        h = self.upper(x)[0]
        loss = F.cross_entropy(F.linear(h, self.embed.weight).flatten(0, 1), ids[:, 1:-1].flatten())
        ahead = torch.tanh(self.join(torch.cat([h, self.embed(ids[:, 1:-1])], -1)))
        return loss + 0.3 * F.cross_entropy(F.linear(ahead, self.embed.weight).flatten(0, 1), ids[:, 2:].flatten())


class TiedPipe:
    """A stage of two, with what it has in common with the other one."""
    def __init__(self, model, stage, fault):
        self.model, self.stage, self.fault = model, stage, fault
        for part in ("upper", "join") if stage == 0 else ("lower",):
            delattr(model, part)
        self.tied = [model.embed.weight]

    def allreduce_tied(self):
        for p in self.tied:
            dist.all_reduce(p.grad)

    def train_batch(self, batches):
        for i, ids in enumerate(batches):
            if self.stage == 0:
                y = self.model(ids[:, :-2], ids)
                dist.send(y.detach().contiguous(), 1)
                g = torch.empty(y.shape)
                dist.recv(g, 1)
                y.backward(g)
            else:
                x = torch.empty(len(ids), ids.shape[1] - 2, D)
                dist.recv(x, 0)
                loss = self.model(x.requires_grad_(), ids) / len(batches)
                loss.backward()
                dist.send(x.grad.contiguous(), 0)
            if i == len(batches) - 1 or self.fault == "everymicro":
                self.allreduce_tied()


def train_mtp(rank, fault, seed):
    torch.manual_seed(seed)
    model = Recurrent()
    pipe = TiedPipe(model, rank, fault)
    opt = torch.optim.Adagrad(model.parameters(), lr=0.05)
    for s in range(2):
        opt.zero_grad()
        pipe.train_batch([choose(100 * seed + 10 * s + m, VOCAB, 3, 7) for m in range(2)])
        opt.step()
    return state(model)


def whole_mtp(seed):
    torch.manual_seed(seed)
    model = Recurrent()
    opt = torch.optim.Adagrad(model.parameters(), lr=0.05)
    for s in range(2):
        opt.zero_grad()
        for m in range(2):
            ids = choose(100 * seed + 10 * s + m, VOCAB, 3, 7)
            (model(ids[:, :-2], ids) / 2).backward()
        opt.step()
    return state(model)


PROGRAMS = {"gpt2": (4, train_gpt2), "mtp": (2, train_mtp)}
WHOLE = {"gpt2": whole_gpt2, "mtp": whole_mtp}

FAULTS = {
    # The head's gradient is computed when the replicas have been reduced:
    # https://github.com/NVIDIA/Megatron-LM/issues/1012
    "latewgrad": ("gpt2", r"all_reduce\.[01]\.|matmul\.[678]\.|add_\.2[789]\.|__setitem__|adamw", "0123"),
    # Reduced over stages where each replica has another half: https://github.com/NVIDIA/Megatron-LM/issues/844
    "scatterfirst": ("gpt2", r"all_reduce\.[01]\.|__setitem__|adamw", "0123"),
    # The stages reduce a buffer in which nothing is: https://github.com/NVIDIA-NeMo/Speech/pull/6958
    "otherbuffer": ("gpt2", r"all_reduce\.0\.|matmul\.[678]\.|add_\.(0|9|18|2[789]|3[012])\.|"
                    r"embedding\.\d\.backward|adamw", "0123"),
    # The tied weight counts twice in the norm: https://github.com/NVIDIA/Megatron-LM/pull/7227
    "twicenorm": ("gpt2", r"all_reduce\.2\.|Tensor\.(square|mul|sum|sqrt|__rdiv__|clamp)\.", "0123"),
    # What is reduced is reduced again with the next micro-batch: https://github.com/PaddlePaddle/Paddle/pull/30437
    "everymicro": ("mtp", r"all_reduce", "01"),
}
