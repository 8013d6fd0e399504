"""Trainers as somebody writes them who trains that model over ranks, and what is reported to go wrong in such: losses
scaled wrongly, replicas that drift apart, gradients reduced wrongly or too early.

Each train(rank, fault, seed, n) is a user's program on n ranks; with n = 1 it is what one process does that has the
whole batch and model, without the collectives.
"""
import copy
import math

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F


def normal(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def words(seed, vocab, *shape):
    return torch.randint(vocab, shape, generator=torch.Generator().manual_seed(seed))


def state(model):
    return {k: v.detach().clone() for k, v in model.state_dict().items() if v.is_floating_point()}


def my_groups(rank):
    """Of four ranks in two rows of two: the row's group, the column's."""
    rows, columns = ([(dist.new_group(r), r) for r in two] for two in ([[0, 1], [2, 3]], [[0, 2], [1, 3]]))
    return [next(g for g, r in groups if rank in r) for groups in (rows, columns)]


def causal(scores, first=0):
    """Masks what lies after a query; the queries start at first."""
    q, k = scores.shape[-2:]
    later = torch.arange(k)[None] > torch.arange(first, first + q)[:, None]
    return scores.masked_fill(later, float("-inf")).softmax(-1)


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
        data = words(100 * seed + it, 20, 8, 7)
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


# --- titan: context parallel, keys and values gathered, rotary positions ------------------------------------

class GatherSequence(torch.autograd.Function):
    """The whole sequence of what each rank has a part of; gloo has no reduce_scatter for the way back."""
    @staticmethod
    def forward(ctx, x):
        parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, x.contiguous())
        return torch.cat(parts, 1)

    @staticmethod
    def backward(ctx, grad):
        grad = grad.contiguous().clone()
        dist.all_reduce(grad)
        return grad.chunk(dist.get_world_size(), 1)[dist.get_rank()].contiguous()


class RMSNorm(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


def rotate(x, first):
    """Rotary embedding of (batch, tokens, d) whose first token is at first."""
    half = x.shape[-1] // 2
    angle = torch.arange(first, first + x.shape[1])[:, None] * 10.0 ** -torch.arange(half)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)


class TitanLayer(nn.Module):
    def __init__(self, d, n):
        super().__init__()
        self.attention_norm, self.ffn_norm, self.n = RMSNorm(d), RMSNorm(d), n
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(d, d, bias=False) for _ in range(4))
        self.w1, self.w3 = nn.Linear(d, 2 * d, bias=False), nn.Linear(d, 2 * d, bias=False)
        self.w2 = nn.Linear(2 * d, d, bias=False)

    def forward(self, x, first):
        h = self.attention_norm(x)
        q, k, v = rotate(self.wq(h), first), rotate(self.wk(h), first), self.wv(h)
        if self.n > 1:
            k, v = GatherSequence.apply(k), GatherSequence.apply(v)
        x = x + self.wo(causal(q @ k.transpose(1, 2) / q.shape[-1] ** 0.5, first) @ v)
        h = self.ffn_norm(x)
        return x + self.w2(F.silu(self.w1(h)) * self.w3(h))


class Titan(nn.Module):
    def __init__(self, n, vocab=16, d=8):
        super().__init__()
        self.tok_embeddings, self.norm = nn.Embedding(vocab, d), RMSNorm(d)
        self.layers = nn.ModuleList(TitanLayer(d, n) for _ in range(2))
        self.output = nn.Linear(d, vocab, bias=False)

    def forward(self, tokens, first):
        h = self.tok_embeddings(tokens)
        for layer in self.layers:
            h = layer(h, first)
        return self.output(self.norm(h))


def train_titan(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = Titan(n)
    opt = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9, nesterov=True)
    for step in range(2):
        tokens = words(200 * seed + step, 16, 2, 8)
        if fault == "cpshift":
            tokens = tokens.chunk(n, 1)[rank]
            labels = F.pad(tokens[:, 1:], (0, 1), value=-100)
        else:
            labels = F.pad(tokens[:, 1:], (0, 1), value=-100).chunk(n, 1)[rank]
            tokens = tokens.chunk(n, 1)[rank]
        logits = model(tokens, rank * tokens.shape[1])
        loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
        valid = (labels != -100).sum().float()
        if n > 1:
            dist.all_reduce(valid)
        # Times the ranks, as gradients are averaged over them.
        (loss * n / valid).backward()
        for p in model.parameters() if n > 1 else ():
            if fault != "cpscale":
                p.grad.div_(n)
            dist.all_reduce(p.grad)
        opt.step()
        opt.zero_grad()
    return state(model)


# --- zero: ZeRO 1 in bf16 with f32 masters and a loss scaler, resumed from a checkpoint ----------------------

class Zero1:
    """Adam over a rank's part of the flat parameters; what a rank has not is gathered after the step."""
    def __init__(self, module, rank, n, fault, lr):
        self.params, self.rank, self.n, self.fault = list(module.parameters()), rank, n, fault
        self.numel = sum(p.numel() for p in self.params)
        # As near to the largest number of bf16 as 2 ** 15 is to that of f16.
        self.scale, self.limit = 2.0 ** 126, 0.5
        self.master = nn.Parameter(self.flat([p.detach() for p in self.params]).chunk(n)[rank].clone())
        self.main_grad, self.adam = 0, torch.optim.Adam([self.master], lr=lr)

    def flat(self, tensors):
        flat = torch.cat([t.reshape(-1) for t in tensors]).float()
        return F.pad(flat, (0, -len(flat) % 2))

    @torch.no_grad()
    def publish(self, gather=True):
        """The parameters, from the parts of all."""
        parts = list(self.flat([p.detach() for p in self.params]).chunk(self.n))
        parts[self.rank] = self.master.detach().clone()
        if self.n > 1 and gather:
            parts = [torch.empty_like(self.master) for _ in range(self.n)]
            dist.all_gather(parts, self.master.detach())
        for p, new in zip(self.params, torch.cat(parts)[:self.numel].split([p.numel() for p in self.params])):
            p.copy_(new.view_as(p))

    @torch.no_grad()
    def load(self, flat):
        self.master.copy_(flat.chunk(self.n)[self.rank])
        self.publish(gather=self.fault != "loadgather")

    @torch.no_grad()
    def accumulate(self):
        """After the backward of a microbatch: what it gave, in f32."""
        self.main_grad = self.main_grad + self.flat([p.grad for p in self.params]) / 2
        for p in self.params:
            p.grad = None

    @torch.no_grad()
    def step(self):
        flat, self.main_grad = self.main_grad, 0
        if self.n > 1:
            dist.all_reduce(flat)
        grad = flat.chunk(self.n)[self.rank] / self.scale
        found_inf = (~grad.isfinite()).any().float()
        if self.n > 1 and self.fault != "foundinf":
            dist.all_reduce(found_inf, dist.ReduceOp.MAX)
        square = torch.zeros(()) if found_inf else grad.square().sum()
        if self.n > 1:
            dist.all_reduce(square)
        if found_inf:
            self.scale /= 2 ** 8
        else:
            self.master.grad = grad * (self.limit / square.sqrt().clamp(min=self.limit))
            self.adam.step()
        self.publish()


def zero_net():
    return nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 7), nn.Tanh(), nn.Linear(7, 3))


def train_zero(rank, fault, seed, n=2):
    torch.manual_seed(seed + 50)
    saved = zero_net()
    torch.manual_seed(seed)
    model = zero_net().bfloat16()
    opt = Zero1(model, rank, n, fault, lr=0.02)
    opt.load(opt.flat([p.detach() for p in saved.parameters()]))
    for step in range(3):
        x, y = normal(300 * seed + step, 8, 6), normal(300 * seed + step + 9, 8, 3)
        if step == 1:
            y = y + 15      # a batch of outliers: the gradient of the last bias overflows
        # Two microbatches in all, so that bf16 rounds the same in one process.
        for micro in [rank] if n > 1 else [0, 1]:
            out = model(x.chunk(2)[micro].bfloat16()).float()
            (F.mse_loss(out, y.chunk(2)[micro]) * 0.5 * opt.scale).backward()
            opt.accumulate()
        opt.step()
    return {**state(model), "master": opt.master.detach().clone()}


# --- hsdp: layers sharded over two ranks and replicated over two, two microbatches a step --------------------

class Unshard(torch.autograd.Function):
    """A layer's flat parameters, gathered once a step; backward to the mean of the shard group."""
    @staticmethod
    def forward(ctx, shard, unit):
        ctx.unit = unit
        if unit.full is None:
            parts = [torch.empty_like(shard) for _ in range(2)]
            dist.all_gather(parts, shard.detach(), group=unit.shard_group)
            unit.full = torch.cat(parts)
        return unit.full.clone()

    @staticmethod
    def backward(ctx, grad):
        grad = grad.clone()
        dist.all_reduce(grad, group=ctx.unit.shard_group)
        return grad.chunk(2)[dist.get_rank() % 2] / 2, None


class FullyShardedLinear(nn.Module):
    def __init__(self, d, out, rank, shard_group):
        super().__init__()
        linear = nn.Linear(d, out)
        flat = torch.cat([linear.weight.detach().flatten(), linear.bias.detach()])
        self.shape, self.shard_group, self.full = (out, d), shard_group, None
        self.flat_param = nn.Parameter(flat if shard_group is None else flat.chunk(2)[rank % 2].clone())

    def forward(self, x):
        flat = self.flat_param if self.shard_group is None else Unshard.apply(self.flat_param, self)
        out, d = self.shape
        return F.linear(x, flat[:out * d].view(out, d), flat[out * d:])


def train_hsdp(rank, fault, seed, n=4):
    shard_group, replica_group = my_groups(rank) if n > 1 else (None, None)
    torch.manual_seed(seed)
    model = nn.Sequential(FullyShardedLinear(6, 8, rank, shard_group), nn.SiLU(),
                          FullyShardedLinear(8, 8, rank, shard_group), nn.SiLU(),
                          FullyShardedLinear(8, 2, rank, shard_group))
    opt = torch.optim.AdamW(model.parameters(), lr=0.02)
    for step in range(3):
        x, y = normal(400 * seed + step, 16, 6), normal(400 * seed + step + 9, 16, 2)
        x, y = x.chunk(n)[rank], y.chunk(n)[rank]
        for xs, ys in zip(x.chunk(2), y.chunk(2)):
            # What is not yet reduced over the replicas is kept apart; of the second of two microbatches that is all.
            partial = [p.grad for p in model.parameters()]
            for p in model.parameters():
                p.grad = None
            (F.mse_loss(model(xs), ys) / 2).backward()
        for p, before in zip(model.parameters(), partial):
            if fault != "hsdplast":
                p.grad += before
            if n > 1:
                dist.all_reduce(p.grad, group=replica_group)
                p.grad /= 2
            if fault == "hsdplast":
                p.grad += before
        opt.step()
        opt.zero_grad(set_to_none=True)
        for unit in model.children():
            if fault != "stale":
                unit.full = None
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
                loss = loss + F.mse_loss(ddp.module(normal(s, 4, 5), task), normal(s + 200, 4, 3))
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
        x, y = normal(600 * seed + step, 8, 2, 4, 4), words(600 * seed + step, 3, 8)
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


# --- speech: a recurrent net; resumed, with a plateau scheduler and an average of weights that is taken over -

class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp, self.rec, self.out = nn.Linear(4, 8), nn.Linear(8, 8, bias=False), nn.Linear(8, 3)

    def forward(self, x):
        h, ys = x.new_zeros(x.shape[0], 8), []
        for t in range(x.shape[1]):
            h = torch.tanh(self.inp(x[:, t]) + self.rec(h))
            ys.append(self.out(h))
        return torch.stack(ys, 1)


def resume(model, opt, seed, rank, fault, n):
    """Rank 0 reads the checkpoint, the others get from it what is in it."""
    for i, p in enumerate(model.parameters()):
        momentum = opt.state[p]["momentum_buffer"] = torch.zeros_like(p)
        if rank == 0:
            p.data.copy_(normal(seed + i, *p.shape) * 0.4)
            momentum.copy_(normal(seed + i + 20, *p.shape) * 0.1)
        if n > 1:
            dist.broadcast(p.data, 0)
            if fault != "resumeopt":
                dist.broadcast(momentum, 0)


@torch.no_grad()
def validate(model, seed, step, rank, fault, n):
    """Each rank has its recordings; those of the last get louder, of the first softer."""
    loss = torch.zeros(())
    for r in [rank] if n > 1 else [0, 1]:
        target = normal(seed + r + 3, 4, 5, 3) * (1 + step) ** (2 * r - 1)
        loss = loss + F.mse_loss(model(normal(seed + r, 4, 5, 4)), target) / (2 // n)
    if n > 1 and fault != "plateau":
        dist.all_reduce(loss)
        loss = loss / n
    return loss.item()


def train_speech(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = Tagger()
    opt = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    resume(model, opt, 700 * seed, rank, fault, n)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=0, factor=0.1)
    ema = copy.deepcopy(model)
    for step in range(3):
        x, y = normal(700 * seed + step, 4, 5, 4), normal(700 * seed + step + 9, 4, 5, 3)
        x, y = x.chunk(n)[rank], y.chunk(n)[rank]
        opt.zero_grad()
        F.mse_loss(model(x), y).backward()
        for p in model.parameters() if n > 1 else ():
            dist.all_reduce(p.grad)
            p.grad /= n
        opt.step()
        plateau.step(validate(model, seed, step, rank, fault, n))
        if fault != "emacopy" or rank == 0:
            with torch.no_grad():
                for e, p in zip(ema.parameters(), model.parameters()):
                    e.lerp_(p, 0.3)
        # Every second step goes on from the average.
        if step % 2:
            model.load_state_dict(ema.state_dict())
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
        image, text = normal(800 * seed + step, 8, 10), words(800 * seed + step, 15, 8, 4)
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
        x, y = normal(900 * seed + step, 12, 5), normal(900 * seed + step + 9, 12, 2)
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


# --- dit: a diffusion transformer, two data parallel groups of two ranks that share a sequence (Ulysses) -----

class SwapHeadsAndTokens(torch.autograd.Function):
    """Of (tokens, heads, d): from a part of the tokens and all heads to all tokens and a part of the heads, or back."""
    @staticmethod
    def forward(ctx, x, group, to_heads):
        ctx.group, ctx.to_heads = group, to_heads
        send = torch.stack(x.chunk(2, 1 if to_heads else 0)).contiguous()
        got = torch.empty_like(send)
        dist.all_to_all_single(got, send, group=group)
        return torch.cat(list(got), 0 if to_heads else 1)

    @staticmethod
    def backward(ctx, grad):
        return SwapHeadsAndTokens.apply(grad, ctx.group, not ctx.to_heads), None, None


class DitBlock(nn.Module):
    def __init__(self, d, heads, group):
        super().__init__()
        self.heads, self.group = heads, group
        self.norm, self.qkv, self.proj = nn.LayerNorm(d, elementwise_affine=False), nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.modulate = nn.Linear(d, 2 * d)
        self.mlp = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))

    def forward(self, x, c):
        shift, scale = self.modulate(F.silu(c)).chunk(2)
        q, k, v = self.qkv(self.norm(x) * (1 + scale) + shift).view(len(x), 3 * self.heads, -1).chunk(3, 1)
        if self.group is not None:
            q, k, v = (SwapHeadsAndTokens.apply(z, self.group, True) for z in (q, k, v))
        q, k, v = (z.transpose(0, 1) for z in (q, k, v))
        y = ((q @ k.transpose(1, 2) / q.shape[-1] ** 0.5).softmax(-1) @ v).transpose(0, 1).contiguous()
        if self.group is not None:
            y = SwapHeadsAndTokens.apply(y, self.group, False)
        x = x + self.proj(y.reshape(x.shape))
        return x + self.mlp(x)


class Dit(nn.Module):
    def __init__(self, group, d=8):
        super().__init__()
        self.patch, self.time, self.final = nn.Linear(4, d), nn.Linear(1, d), nn.Linear(d, 4)
        self.blocks = nn.ModuleList(DitBlock(d, 2, group) for _ in range(2))

    def forward(self, x, t):
        c, h = self.time(t), self.patch(x)
        for block in self.blocks:
            h = block(h, c)
        return self.final(h)


def train_dit(rank, fault, seed, n=4):
    sp_group, dp_group = my_groups(rank) if n > 1 else (None, None)
    torch.manual_seed(seed)
    model = Dit(sp_group)
    opt = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    dp_size, sp_size = (2, 2) if n > 1 else (1, 1)
    for step in range(2):
        loss, count = 0, torch.zeros(())
        for video in [rank // sp_size] if n > 1 else [0, 1]:
            latent, frames = normal(1000 * seed + 2 * step + video, 6, 4), [6, 4][video]
            # Each rank draws, and has what the first of those draws that share its video.
            drawn = normal(3000 * seed + 10 * step + (rank if n > 1 else 2 * video), 25)
            if n > 1 and fault != "spnoise":
                dist.broadcast(drawn, rank // sp_size * sp_size, group=sp_group)
            noise, t = drawn[:24].view(6, 4), drawn[24:].sigmoid()
            mask = (torch.arange(6) < frames).float()       # the rest is padding
            x, target, mask = (z.chunk(sp_size)[rank % sp_size] for z in ((1 - t) * latent + t * noise,
                                                                          noise - latent, mask))
            loss = loss + ((model(x, t) - target).square().mean(-1) * mask).sum()
            count = count + mask.sum()
        if n > 1:
            dist.all_reduce(count)
        # Times the ranks, as gradients are averaged over them.
        loss = loss / count * (dp_size if fault == "spfactor" else dp_size * sp_size)
        opt.zero_grad()
        loss.backward()
        for p in model.parameters() if n > 1 else ():
            dist.all_reduce(p.grad, group=dp_group if fault == "spdponly" else None)
            p.grad /= dist.get_world_size(dp_group if fault == "spdponly" else None)
        opt.step()
    return state(model)


PROGRAMS = {"nanogpt": (2, train_nanogpt), "titan": (2, train_titan), "zero": (2, train_zero),
            "hsdp": (4, train_hsdp), "ddp": (2, train_ddp), "convnet": (2, train_convnet),
            "speech": (2, train_speech), "clip": (2, train_clip), "moe": (2, train_moe), "dit": (4, train_dit)}
WHOLE = {n: lambda seed, f=f: f(0, None, seed, 1) for n, (_, f) in PROGRAMS.items()}
# Where replicas part, either of two may be named: which of them is right nobody can tell.
FAULTS = {
    # Tokens counted by each rank for itself, then averaged: https://github.com/huggingface/transformers/issues/39392
    "ranktokens": ("nanogpt", r"cross_entropy|div\.[25]\.|all_reduce|sum\.0|float\.0|mul\.0\.", "01"),
    # Clipped by the norm of a rank's own gradients, before they are reduced:
    # https://github.com/huggingface/diffusers/pull/721
    "clipfirst": ("nanogpt", r"Torch\.norm|stack|add\.10\.|rdiv|clamp|mul_|all_reduce|adamw|parameters_grad", "01"),
    # Labels shifted after the sequence is split: the last token of a part has none:
    # https://github.com/huggingface/transformers/pull/36607
    "cpshift": ("titan", r"pad\.|cross_entropy|flatten|chunk|__getitem__\.0|ne\.\d|sum\.|all_reduce\.0\.", "01"),
    # The loss times the context parallel size, gradients divided by the data parallel size alone:
    # https://github.com/NVIDIA/Megatron-LM/issues/906
    "cpscale": ("titan", r"mul\.32\.|div\.2\.|cross_entropy|all_reduce|sgd|parameters_grad", "01"),
    # An overflow in its own shard alone makes a rank skip: https://github.com/facebookresearch/fairscale/issues/180
    "foundinf": ("zero", r"isfinite|__invert__|any\.|all_reduce|adam|all_gather|square|sum\.", "01"),
    # After loading, the parameters are not gathered from the shards:
    # https://github.com/NVIDIA/Megatron-LM/pull/6920
    "loadgather": ("zero", r"copy_\.|cat\.|clone|split|view_as|linear\.[0-2]\.forward|__getitem__\.0", "01"),
    # HSDP reduces the last microbatch alone over the replicas: https://github.com/pytorch/pytorch/pull/125484
    "hsdplast": ("hsdp", r"all_reduce|add_|div_|adamw|parameters_grad", "0123"),
    # What was gathered before the optimizer's step is used after it:
    # https://github.com/Robbyant/lingbot-vla/pull/50
    "stale": ("hsdp", r"step1:linear|clone|view|__getitem__", "0123"),
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
    # Another learning rate on each rank, by its own validation loss:
    # https://github.com/lucidrains/DALLE-pytorch/issues/268
    "plateau": ("speech", r"sgd|mse_loss|div\.", "01"),
    # The checkpoint's optimizer state is on rank 0 alone: https://github.com/vllm-project/speculators/pull/926
    "resumeopt": ("speech", r"sgd|broadcast", "01"),
    # Rank 0 averages the weights, all take the average over: https://github.com/lucidrains/ema-pytorch/issues/9
    "emacopy": ("speech", r"lerp_|copy_|linear\.[01]\.forward", "01"),
    # Features of other ranks without gradient, and a loss of own rows:
    # https://github.com/mlfoundations/open_clip/issues/894
    "gathernograd": ("clip", r"all_gather|cat\.|matmul\.\d\.backward|normalize|linear\.2\.backward|mul\.\d\.backward|"
                     r"linear\.0\.backward", "01"),
    # The balance of all tokens, from own probabilities, divided by all tokens twice:
    # https://github.com/NVIDIA/Megatron-LM/pull/3769
    "auxscale": ("moe", r"all_reduce\.0\.|sum\.[12]\.|div\.0\.|mul\.([89]|1[01])\.|softmax\.0\.backward|"
                 r"linear\.1\.backward|gate|add\.5", "01"),
    # The norm of gradients that are the same on all ranks, summed over them:
    # https://github.com/modelscope/twinkle/pull/290
    "normtwice": ("moe", r"all_reduce|sqrt|clamp|rdiv|mul_|square", "01"),
    # Gradients averaged over the data parallel group, not over those that share a sequence:
    # https://github.com/ByteDance-Seed/VeOmni/pull/1115
    "spdponly": ("dit", r"all_reduce|div_|sgd|parameters_grad", "0123"),
    # Ranks that share a sequence draw noise and time each for itself:
    # https://github.com/NVIDIA-NeMo/Automodel/pull/3157
    "spnoise": ("dit", r"sigmoid|mul\.[01]\.|__getitem__|view\.0|add\.0|sub\.0|rsub|linear\.[01]\.forward|all_to_all|"
                r"chunk", "0123"),
    # The loss times the data parallel size, gradients averaged over that and the sequence parallel one:
    # https://github.com/ByteDance-Seed/VeOmni/pull/338
    "spfactor": ("dit", r"mul\.5\.|div\.2\.|all_reduce|sum\.0|div_|parameters_grad", "0123"),
}
