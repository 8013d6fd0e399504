"""Small trainers whose ranks each have a part of the batch, and what public trackers report to go wrong: losses
scaled wrongly, gradients reduced wrongly or too early.

Each train(rank, fault, seed, n) is a user's program on n ranks; with n = 1 it is what one process does that has the
whole model and batch, without the collectives.
"""
import math

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

from trainers_kit import causal, ids, rand, state


# --- nanogpt: data parallel, accumulation, tied embeddings, loss per token of the whole batch ---------------

class SelfAttention(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.c_attn, self.c_proj, self.heads = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d), heads

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (z.view(b, t, self.heads, -1).transpose(1, 2) for z in self.c_attn(x).split(d, 2))
        y = causal(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])) @ v
        return self.c_proj(y.transpose(1, 2).reshape(b, t, d))


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.ln_1, self.attn, self.ln_2 = nn.LayerNorm(d), SelfAttention(d, heads), nn.LayerNorm(d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class NanoGpt(nn.Module):
    def __init__(self, vocab=20, d=8, t=6):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, d), nn.Embedding(t, d)
        self.h, self.ln_f = nn.ModuleList(Block(d, 2) for _ in range(2)), nn.LayerNorm(d)
        self.lm_head = nn.Linear(d, vocab, bias=False)
        self.lm_head.weight = self.wte.weight
        nn.init.normal_(self.wte.weight, std=0.3)

    def forward(self, idx, targets):
        x = self.wte(idx) + self.wpe(torch.arange(idx.shape[1]))
        for block in self.h:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1, reduction="sum")


def sync_gradients(model, n):
    for p in model.parameters() if n > 1 else ():
        dist.all_reduce(p.grad)


def train_nanogpt(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = NanoGpt()
    groups = [{"params": [p for p in model.parameters() if (p.dim() > 1) == big], "weight_decay": 0.1 * big}
              for big in (True, False)]
    opt = torch.optim.AdamW(groups, lr=0.01, betas=(0.9, 0.95))
    warmup = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / 2))
    for it in range(3):
        data = ids(100 * seed + it, 20, 8, 7)
        x, y = data[:, :-1], data[:, 1:].clone()
        # Prompts are not learned; those of the second half are longer.
        for row in range(8):
            y[row, :1 + row // 2] = -1
        x, y = x.chunk(n)[rank], y.chunk(n)[rank]
        count = (y != -1).sum().float()
        if fault == "ranktokens":
            count = count * n
        elif n > 1:
            dist.all_reduce(count)
        for xs, ys in zip(x.chunk(2), y.chunk(2)):
            (model(xs, ys) / count).backward()
        if fault == "clipfirst":
            nn.utils.clip_grad_norm_(model.parameters(), 0.2)
        sync_gradients(model, n)
        if fault != "clipfirst":
            nn.utils.clip_grad_norm_(model.parameters(), 0.2)
        opt.step()
        warmup.step()
        opt.zero_grad(set_to_none=True)
    return state(model)


# --- ddp: a wrapper with hooks and asynchronous buckets, two tasks of which a rank has one ------------------

class Ddp:
    """Reduces a bucket as soon as the gradients in it and in those before it are there."""
    def __init__(self, module, n, fault, size=40):
        self.module, self.n, self.fault, self.sync = module, n, fault, True
        self.buckets, self.ready, self.flying, self.nodes = [[]], set(), [], []
        for p in reversed(list(module.parameters())):
            if sum(q.numel() for q in self.buckets[-1]) > size:
                self.buckets.append([])
            self.buckets[-1].append(p)
            node = p.expand_as(p).grad_fn.next_functions[0][0]
            node.register_hook(lambda *_, p=p: self.hook(p))
            self.nodes.append(node)     # else its hook goes with it

    def hook(self, p):
        self.ready.add(p)
        if self.sync and self.n > 1:
            self.launch()

    def launch(self, rest=False):
        while len(self.flying) < len(self.buckets):
            bucket = self.buckets[len(self.flying)]
            if not rest and not self.ready.issuperset(bucket):
                return
            flat = torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in bucket])
            self.flying.append((dist.all_reduce(flat, async_op=True), flat))

    def finish(self):
        """After a backward: waits, and copies back."""
        if self.sync and self.n > 1:
            self.launch(rest=True)      # with what no loss of this rank reaches
            for (work, flat), bucket in zip(self.flying, self.buckets):
                work.wait()
                for p, g in zip(bucket, flat.div_(self.n).split([p.numel() for p in bucket])):
                    if p.grad is not None or self.fault != "unusedgrad":
                        p.grad = g.view_as(p).clone()
        self.flying, self.ready = [], set()


class TwoTasks(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleList(nn.Linear(6, 3) for _ in range(2))
        self.encoder = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 6), nn.LayerNorm(6), nn.GELU())

    def forward(self, x, task):
        return self.heads[task](self.encoder(x))


def train_ddp(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = TwoTasks()
    ddp = Ddp(model, n, fault)
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01)
    tasks = [rank] if n > 1 else [0, 1]
    for step in range(2):
        opt.zero_grad(set_to_none=True)
        for micro in range(2):
            ddp.sync = micro == (0 if fault == "firstmicro" else 1)
            loss = 0
            for task in tasks:
                s = 500 * seed + 10 * step + 2 * micro + task
                loss = loss + F.mse_loss(ddp.module(rand(s, 4, 5), task), rand(s + 200, 4, 3))
            (loss / len(tasks) / 2).backward()
            ddp.finish()
        opt.step()
    return state(model)


# --- convnet: batch norm over all ranks, of which one has fewer images --------------------------------------

class SyncBatchNormFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, bn):
        count = torch.tensor([float(x.numel() // x.shape[1])])
        sums = torch.cat([x.sum((0, 2, 3)), x.square().sum((0, 2, 3)), count])
        if bn.n > 1:
            dist.all_reduce(sums)
        c, total = x.shape[1], sums[-1]
        mean = sums[:c] / total
        var = sums[c:2 * c] / total - mean.square()
        bn.running_mean.lerp_(mean, 0.1)
        bn.running_var.lerp_(var * total / (total - 1), 0.1)
        inv = (var + 1e-5).rsqrt()
        ctx.save_for_backward(x, weight, mean, inv, total)
        ctx.bn = bn
        return (x - mean[:, None, None]) * (inv * weight)[:, None, None] + bias[:, None, None]

    @staticmethod
    def backward(ctx, dy):
        x, weight, mean, inv, total = ctx.saved_tensors
        xmu = x - mean[:, None, None]
        dbias, dxmu = dy.sum((0, 2, 3)), (dy * xmu).sum((0, 2, 3))
        sums = torch.stack([dbias, dxmu])
        if ctx.bn.n > 1:
            dist.all_reduce(sums)
        if ctx.bn.fault == "dgrad":
            total = x.numel() // x.shape[1] * ctx.bn.n
        mean_dy, mean_dy_xmu = sums / total
        dx = dy - mean_dy[:, None, None] - xmu * (inv.square() * mean_dy_xmu)[:, None, None]
        return dx * (inv * weight)[:, None, None], dxmu * inv, dbias, None


class SyncBatchNorm(nn.Module):
    def __init__(self, c, n, fault):
        super().__init__()
        self.n, self.fault = n, fault
        self.weight, self.bias = nn.Parameter(torch.ones(c)), nn.Parameter(torch.zeros(c))
        self.register_buffer("running_mean", torch.zeros(c))
        self.register_buffer("running_var", torch.ones(c))

    def forward(self, x):
        return SyncBatchNormFunction.apply(x, self.weight, self.bias, self)


def train_convnet(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Conv2d(2, 4, 3, padding=1, bias=False), SyncBatchNorm(4, n, fault), nn.ReLU(),
                          nn.Conv2d(4, 4, 3, padding=1, bias=False), SyncBatchNorm(4, n, fault), nn.ReLU(),
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3))
    opt = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 4)
    for step in range(3):
        x, y = rand(600 * seed + step, 8, 2, 4, 4), ids(600 * seed + step, 3, 8)
        if n > 1:
            x, y = x.split([2, 6])[rank], y.split([2, 6])[rank]
        opt.zero_grad()
        (F.cross_entropy(model(x), y, reduction="sum") / 8).backward()
        if n > 1:
            flat = nn.utils.parameters_to_vector([p.grad for p in model.parameters()])
            dist.all_reduce(flat)
            for p, g in zip(model.parameters(), flat.split([p.numel() for p in model.parameters()])):
                p.grad.copy_(g.view_as(p))
        opt.step()
        cosine.step()
    return state(model)


# --- clip: two towers, features of all ranks against a rank's own -------------------------------------------

class GatherWithGrad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        out = [torch.empty_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(out, x.contiguous())
        return torch.cat(out)

    @staticmethod
    def backward(ctx, grad):
        grad = grad.contiguous().clone()
        dist.all_reduce(grad)
        return grad.chunk(dist.get_world_size())[dist.get_rank()]


def gather_features(x, gather_with_grad):
    if gather_with_grad:
        return GatherWithGrad.apply(x)
    out = [torch.empty_like(x) for _ in range(dist.get_world_size())]
    dist.all_gather(out, x.detach().contiguous())
    out[dist.get_rank()] = x
    return torch.cat(out)


class Clip(nn.Module):
    def __init__(self):
        super().__init__()
        self.visual = nn.Sequential(nn.Linear(10, 12), nn.GELU(), nn.LayerNorm(12), nn.Linear(12, 6))
        self.token_embedding, self.text_projection = nn.Embedding(15, 8), nn.Linear(8, 6, bias=False)
        self.logit_scale = nn.Parameter(torch.tensor(1.5))

    def forward(self, image, text):
        text = self.text_projection(self.token_embedding(text).mean(1).tanh())
        return F.normalize(self.visual(image), dim=-1), F.normalize(text, dim=-1), self.logit_scale.exp()


def train_clip(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = Clip()
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(2):
        image, text = rand(800 * seed + step, 8, 10), ids(800 * seed + step, 15, 8, 4)
        features_i, features_t, scale = model(image.chunk(n)[rank], text.chunk(n)[rank])
        all_i, all_t = features_i, features_t
        if n > 1:
            all_i, all_t = (gather_features(x, fault != "gathernograd") for x in (features_i, features_t))
        labels = torch.arange(len(features_i)) + rank * len(features_i)
        loss = (F.cross_entropy(scale * features_i @ all_t.T, labels) +
                F.cross_entropy(scale * features_t @ all_i.T, labels)) / 2
        opt.zero_grad()
        loss.backward()
        works = [dist.all_reduce(p.grad, async_op=True) for p in model.parameters() if n > 1]
        for work, p in zip(works, model.parameters()):
            work.wait()
            p.grad.div_(n)
        opt.step()
    return state(model)


PROGRAMS = {"nanogpt": (2, train_nanogpt), "ddp": (2, train_ddp), "convnet": (2, train_convnet),
            "clip": (2, train_clip)}
WHOLE = {name: lambda seed, f=f: f(0, None, seed, 1) for name, (_, f) in PROGRAMS.items()}
# Where replicas part, either of two may be named: which of them is right nobody can tell.
FAULTS = {
    # Tokens counted by each rank for itself, then averaged: https://github.com/huggingface/transformers/issues/39392
    "ranktokens": ("nanogpt", r"cross_entropy|div\.[25]\.|all_reduce|sum\.0|float\.0|mul\.0\.", "01"),
    # Clipped by the norm of a rank's own gradients, before they are reduced:
    # https://github.com/huggingface/diffusers/pull/721
    "clipfirst": ("nanogpt", r"Torch\.norm|stack|add\.10\.|rdiv|clamp|mul_|all_reduce|adamw|parameters_grad", "01"),
    # The first microbatch is reduced, those after it are not: https://github.com/InfiniTensor/InfiniTrain/pull/213
    "firstmicro": ("ddp", r"all_reduce|linear\.\d+\.backward|layer_norm\.\d+\.backward|div_|sgd|parameters_grad|clone",
                   "01"),
    # A parameter of which a rank has no gradient gets none from the others:
    # https://github.com/pytorch/pytorch/pull/174862
    "unusedgrad": ("ddp", r"sgd|heads|all_reduce|clone|view_as|div_|split", "01"),
    # Backward of a batch norm over ranks that counts as if all had as many images:
    # https://github.com/pytorch/pytorch/pull/36382
    "dgrad": ("convnet", r"all_reduce\.[23]\.|div\.[78]\.|unbind|stack|sub\.([78]|1[01])\.|mul\.([6-9]|1\d)\.|"
              r"conv2d\.[01]\.backward|relu\.0\.backward", "01"),
    # Features of other ranks without gradient, and a loss of own rows:
    # https://github.com/mlfoundations/open_clip/issues/894
    "gathernograd": ("clip", r"all_gather|cat\.|matmul\.\d\.backward|normalize|linear\.2\.backward|mul\.\d\.backward|"
                     r"linear\.0\.backward", "01"),
}
