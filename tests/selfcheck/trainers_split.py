"""Small trainers: layers split over ranks with weights that each rank has whole, stages that share an embedding,
mixtures of experts; and what public trackers report to go wrong with the weights that more than one rank has.

Each train(rank, fault, seed, n) is a user's program on n ranks; with n = 1 it is what one process does that has the
whole model and batch, without the collectives.
"""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors

D = 16


def rand(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def ids(seed, high, *shape):
    return torch.randint(high, shape, generator=torch.Generator().manual_seed(seed))


def ends(model):
    """The weights of a model and their gradients, not copied."""
    out = {k: p.data for k, p in model.named_parameters()}
    out.update({f"grad.{k}": p.grad for k, p in model.named_parameters() if p.grad is not None})
    return out


def grid(rank, rows):
    """The group of the rank among rows of ranks; every rank makes them all."""
    groups = [(dist.new_group(row), row) for row in rows]
    return next(g for g, row in groups if rank in row)


# --- mqa: a researcher's script; the heads of the queries are split, the one head of keys and values is not --------

class Enter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        grad = grad.clone()
        dist.all_reduce(grad)
        return grad


class Leave(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad


def shard(weight, rank, n, dim=0):
    return nn.Parameter(weight.detach().chunk(n, dim)[rank].clone())


class RowLinear(nn.Module):
    """Each rank adds its n-th of the bias, before the sum."""
    def __init__(self, din, dout, rank, n, fault):
        super().__init__()
        whole = nn.Linear(din, dout)
        self.n, self.fault = n, fault
        self.weight, self.bias = shard(whole.weight, rank, n, 1), nn.Parameter(whole.bias.detach() + 0.2)

    def forward(self, x):
        bias = self.bias / self.n
        if self.fault != "biasscale":
            bias = self.bias + (bias - self.bias).detach()   # the gradient is of the whole bias
        y = F.linear(x, self.weight, bias)
        return Leave.apply(y) if self.n > 1 else y


class MqaBlock(nn.Module):
    def __init__(self, heads, rank, n, fault):
        super().__init__()
        self.fault, self.hd = fault, D // heads
        self.enter = Enter.apply if n > 1 else lambda x: x
        self.ln1, self.ln2 = nn.LayerNorm(D), nn.LayerNorm(D)
        q, up = nn.Linear(D, D, bias=False), nn.Linear(D, 3 * D, bias=False)
        self.q, self.up = shard(q.weight, rank, n), shard(up.weight, rank, n)
        self.kv = nn.Linear(D, 2 * self.hd)
        self.proj, self.down = RowLinear(D, D, rank, n, fault), RowLinear(3 * D, D, rank, n, fault)

    def forward(self, x):
        b, s, _ = x.shape
        h = self.ln1(x)
        hp = self.enter(h)
        q = F.linear(hp, self.q).view(b, s, -1, self.hd).transpose(1, 2)
        k, v = self.kv(h if self.fault == "kvinput" else hp)[:, None].chunk(2, -1)
        att = (q @ k.transpose(2, 3) / self.hd ** 0.5).softmax(-1) @ v
        x = x + self.proj(att.transpose(1, 2).reshape(b, s, -1))
        return x + self.down(F.gelu(F.linear(self.enter(self.ln2(x)), self.up)))


class MqaNet(nn.Module):
    def __init__(self, rank, n, fault):
        super().__init__()
        self.inp = nn.Linear(6, D)
        self.blocks = nn.ModuleList(MqaBlock(4, rank, n, fault) for _ in range(2))
        self.cls = nn.Linear(D, 5)

    def forward(self, x):
        x = self.inp(x)
        for block in self.blocks:
            x = block(x)
        return self.cls(x.mean(1))


def train_mqa(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    net = MqaNet(rank, n, fault)
    opt = torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.9)
    sched = torch.optim.lr_scheduler.StepLR(opt, 1, 0.7)
    shared = [p for block in net.blocks for p in block.kv.parameters() if fault != "kvbias" or p.ndim > 1]
    for step in range(3):
        x, y = rand(seed * 91 + step, 4, 5, 6), ids(seed * 91 + step + 50, 5, 4)
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        if n > 1:
            flat = torch.cat([p.grad.flatten() for p in shared])
            dist.all_reduce(flat)
            for p, g in zip(shared, flat.split([p.numel() for p in shared])):
                p.grad.copy_(g.view_as(p))
        opt.step()
        sched.step()
    return ends(net)


# --- lora: adapters in a frozen sequence parallel layer, as they are put into Megatron's ---------------------------

class GatherSeq(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group=None):
        ctx.group, parts = group, [torch.empty_like(x) for _ in range(dist.get_world_size(group))]
        dist.all_gather(parts, x.contiguous(), group=group)
        return torch.cat(parts)

    @staticmethod
    def backward(ctx, grad):
        grad = grad.contiguous().clone()   # gloo has no reduce_scatter
        dist.all_reduce(grad, group=ctx.group)
        return grad.chunk(dist.get_world_size(ctx.group))[dist.get_rank(ctx.group)].contiguous(), None


class ScatterSeq(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group=None):
        ctx.group, x = group, x.contiguous().clone()
        dist.all_reduce(x, group=group)
        return x.chunk(dist.get_world_size(group))[dist.get_rank(group)].contiguous()

    @staticmethod
    def backward(ctx, grad):
        parts = [torch.empty_like(grad) for _ in range(dist.get_world_size(ctx.group))]
        dist.all_gather(parts, grad.contiguous(), group=ctx.group)
        return torch.cat(parts), None


def frozen(weight, rank, n, dim):
    return nn.Parameter(weight.detach().chunk(n, dim)[rank].clone(), requires_grad=False)


class LoraColumn(nn.Module):
    def __init__(self, din, dout, rank, n, r=3):
        super().__init__()
        self.base = frozen(nn.Linear(din, dout).weight, rank, n, 0)
        self.lora_a = nn.Linear(din, r, bias=False).weight
        self.lora_b = shard(nn.Linear(r, dout, bias=False).weight, rank, n)
        self.gather = GatherSeq.apply if n > 1 else lambda x: x
        self.replicated = self.lora_a

    def forward(self, x):
        low = self.gather(F.linear(x, self.lora_a))
        return F.linear(self.gather(x), self.base) + 2.0 * F.linear(low, self.lora_b)


class LoraRow(nn.Module):
    def __init__(self, din, dout, rank, n, r=3):
        super().__init__()
        self.base = frozen(nn.Linear(din, dout).weight, rank, n, 1)
        self.lora_a = shard(nn.Linear(din, r, bias=False).weight, rank, n, 1)
        self.lora_b = nn.Linear(r, dout, bias=False).weight
        self.scatter = ScatterSeq.apply if n > 1 else lambda x: x
        self.replicated = self.lora_b

    def forward(self, x):
        low = self.scatter(F.linear(x, self.lora_a))
        return self.scatter(F.linear(x, self.base)) + 2.0 * F.linear(low, self.lora_b)


class LoraNet(nn.Module):
    def __init__(self, rank, n, fault):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(D) for _ in range(3))
        self.mix, self.out = LoraColumn(D, D, rank, n), LoraRow(D, D, rank, n)
        self.fc1, self.fc2 = LoraColumn(D, 2 * D, rank, n), LoraRow(2 * D, D, rank, n)
        self.head = nn.Linear(D, 7)
        for p in self.head.parameters():
            p.sequence_parallel = True
        for m in (self.mix, self.out, self.fc1, self.fc2):
            m.replicated.sequence_parallel = fault != "lorafactor"

        def reduce_norm(grad):
            grad = grad.clone()
            dist.all_reduce(grad)
            return grad / n if fault == "spmean" else grad
        for p in self.norms.parameters():
            if n > 1:
                p.register_hook(reduce_norm)

    def forward(self, x):
        h = self.mix(self.norms[0](x))
        x = x + self.out(torch.tanh(h.cumsum(0) / 2))   # the layer in between has all tokens
        x = x + self.fc2(F.silu(self.fc1(self.norms[1](x))))
        return self.head(self.norms[2](x))


def finalize_grads(model):
    """The gradients of what each rank applies to its own tokens, summed in one call."""
    grads = [p.grad for p in model.parameters() if getattr(p, "sequence_parallel", False)]
    flat = _flatten_dense_tensors(grads)
    dist.all_reduce(flat)
    for grad, got in zip(grads, _unflatten_dense_tensors(flat, grads)):
        grad.copy_(got)


def train_lora(rank, fault, seed, n=2):
    torch.manual_seed(seed + 3)
    model = LoraNet(rank, n, fault)
    opt = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.3, momentum=0.8, nesterov=True)
    for it in range(2):
        opt.zero_grad(set_to_none=True)
        for micro in range(2):
            x, y = rand(seed * 77 + 2 * it + micro, 6, 2, D), ids(seed * 77 + 2 * it + micro + 9, 7, 6, 2)
            logits = model(x.chunk(n)[rank])
            loss = F.cross_entropy(logits.flatten(0, 1), y.chunk(n)[rank].flatten(), reduction="sum")
            (loss / y.numel() / 2).backward()
        if n > 1:
            finalize_grads(model)
        opt.step()
    return ends(model)


# --- ulysses: two replicas of two ranks, each with a part of the tokens; heads are exchanged for the attention -----

class AllToAll(torch.autograd.Function):
    """Gives away chunks of a dimension, of another one it gets all."""
    @staticmethod
    def forward(ctx, x, give, take, group):
        ctx.args = take, give, group
        src = torch.stack(x.chunk(2, give)).contiguous()
        dst = torch.empty_like(src)
        dist.all_to_all_single(dst, src, group=group)
        return torch.cat(list(dst), take)

    @staticmethod
    def backward(ctx, grad):
        return (AllToAll.apply(grad, *ctx.args), None, None, None)


class UlyssesAttention(nn.Module):
    def __init__(self, sp):
        super().__init__()
        self.sp, self.qkv, self.o = sp, nn.Linear(D, 3 * D), nn.Linear(D, D)

    def exchange(self, x, give, take):
        return x if self.sp is None else AllToAll.apply(x, give, take, self.sp)

    def forward(self, x):
        q, k, v = (self.exchange(t.unflatten(-1, (4, 4)), 2, 1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        mask = torch.full((q.shape[2], q.shape[2]), float("-inf")).triu(1)
        out = ((q @ k.transpose(2, 3) / 2 + mask).softmax(-1) @ v).transpose(1, 2)
        return self.o(self.exchange(out, 1, 2).flatten(2))


class RMSNorm(nn.Module):
    def __init__(self, dim=D):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


class Dit(nn.Module):
    def __init__(self, sp):
        super().__init__()
        self.patch, self.n1, self.n2 = nn.Linear(8, D), RMSNorm(), RMSNorm()
        self.attn, self.mlp = UlyssesAttention(sp), nn.Sequential(nn.Linear(D, 2 * D), nn.SiLU(), nn.Linear(2 * D, D))
        self.out = nn.Linear(D, 8)

    def forward(self, x):
        x = self.patch(x)
        x = x + self.attn(self.n1(x))
        return self.out(x + self.mlp(self.n2(x)))


def sync_buckets(params, group, limit=600):
    """Averages gradients in buckets from the last weight to the first, as they get ready."""
    buckets, size = [[]], 0
    for p in reversed(params):
        if size + p.numel() > limit and buckets[-1]:
            buckets.append([])
            size = 0
        buckets[-1].append(p.grad)
        size += p.numel()
    flats = [_flatten_dense_tensors(b) for b in buckets]
    works = [dist.all_reduce(f, group=group, async_op=True) for f in flats]
    for bucket, flat, work in zip(buckets, flats, works):
        work.wait()
        flat.div_(dist.get_world_size(group))
        for grad, got in zip(bucket, _unflatten_dense_tensors(flat, bucket)):
            grad.copy_(got)


def train_ulysses(rank, fault, seed, n=4):
    sp = dp = dp_sp = None
    if n > 1:
        sp, dp = grid(rank, [[0, 1], [2, 3]]), grid(rank, [[0, 2], [1, 3]])
        dp_sp = dist.group.WORLD
    torch.manual_seed(seed + 5)
    model = Dit(sp)
    params = list(model.parameters())
    opt = torch.optim.AdamW(params, lr=0.01, eps=1e-5)
    for step in range(2):
        x, noise = rand(seed * 31 + step, 4, 6, 8), rand(seed * 31 + step + 7, 4, 6, 8)
        if n > 1:
            x, noise = (t.chunk(2)[rank // 2].chunk(2, 1)[rank % 2] for t in (x, noise))
        opt.zero_grad()
        F.mse_loss(model(x + 0.5 * noise), noise).backward()
        if n > 1:
            sync_buckets(params, dp if fault == "spgroup" else dp_sp)
        nn.utils.clip_grad_norm_(params, 0.5)
        opt.step()
    return ends(model)


# --- pipe: a GPT in two stages, the first stage's embedding is the last one's head ---------------------------------

VOCAB = 20


class GptBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln, self.mix = nn.LayerNorm(D), nn.Linear(D, D)
        self.up, self.down = nn.Linear(D, 2 * D), nn.Linear(2 * D, D)

    def forward(self, x):
        h = self.ln(x)
        count = torch.arange(1, x.shape[1] + 1, dtype=x.dtype)[:, None]
        return x + torch.tanh(self.mix(h.cumsum(1) / count)) + self.down(F.gelu(self.up(h)))


class GptStage(nn.Module):
    def __init__(self, seed, layers, first, last):
        super().__init__()
        self.first, self.last = first, last
        torch.manual_seed(seed)
        self.word = nn.Embedding(VOCAB, D)
        self.blocks = nn.ModuleDict()
        for i in layers:
            torch.manual_seed(seed + 10 + i)
            self.blocks[str(i)] = GptBlock()
        if last:
            self.final = nn.LayerNorm(D)
        # What another stage counts is not counted again.
        self.word.weight.shared = last and not first

    def forward(self, x):
        x = self.word(x) if self.first else x
        for block in self.blocks.values():
            x = block(x)
        return F.linear(self.final(x), self.word.weight) if self.last else x


def gpipe(stage, rank, batches):
    """All forwards, then all backwards."""
    held = []
    for t, _ in batches:
        if rank == 0:
            out = stage(t)
            dist.send(out.detach(), 1)
            held.append(out)
        else:
            x = torch.empty(*t.shape, D)
            dist.recv(x, 0)
            held.append((x.requires_grad_(), stage(x)))
    for (_, y), got in zip(batches, held):
        if rank == 0:
            grad = torch.empty_like(got)
            dist.recv(grad, 1)
            got.backward(grad)
        else:
            x, logits = got
            (F.cross_entropy(logits.flatten(0, 1), y.flatten()) / len(batches)).backward()
            dist.send(x.grad, 0)


def clip_by_model_norm(params, limit, count_shared, n):
    total = sum(p.grad.square().sum() for p in params if count_shared or not getattr(p, "shared", False))
    if n > 1:
        dist.all_reduce(total)
    coef = (limit / (total.sqrt() + 1e-6)).clamp(max=1.0)
    for p in params:
        p.grad.mul_(coef)


def train_pipe(rank, fault, seed, n=2):
    stage = GptStage(seed + 20, [0, 1] if n == 1 else [rank], rank == 0, rank == n - 1)
    params = list(stage.parameters())
    opt = torch.optim.SGD(params, lr=0.5, momentum=0.9)
    for step in range(3):
        batches = [ids(seed * 53 + 3 * step + m, VOCAB, 2, 6) for m in range(2)]
        batches = [(t[:, :-1], t[:, 1:]) for t in batches]
        opt.zero_grad()
        if n == 1:
            for t, y in batches:
                (F.cross_entropy(stage(t).flatten(0, 1), y.flatten()) / 2).backward()
        else:
            gpipe(stage, rank, batches)
            if fault != "tiednosync":
                dist.all_reduce(stage.word.weight.grad)
        clip_by_model_norm(params, 0.4, fault == "tiednorm", n)
        opt.step()
    return ends(stage)


# --- pipezero: two stages of two replicas, with a sharded optimizer and the gradient of the head deferred ----------

class HeadLinear(torch.autograd.Function):
    """Logits whose weight gets its gradient later, out of the pipeline's way."""
    @staticmethod
    def forward(ctx, x, weight, later):
        ctx.save_for_backward(x, weight)
        ctx.later = later
        return x @ weight.t()

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        ctx.later.append((grad, x))
        return grad @ weight, None, None


class ZeroStage(nn.Module):
    """The embedding is the first weight of the first stage, and the last one of the last."""
    def __init__(self, seed, layers, first, last):
        super().__init__()
        self.first, self.last, self.later = first, last, []
        if first:
            self.wte = nn.Embedding.from_pretrained(rand(seed, VOCAB, D) * 0.5, freeze=False)
        for i in layers:
            torch.manual_seed(seed + i)
            setattr(self, f"layer{i}", nn.Sequential(RMSNorm(), nn.Linear(D, D), nn.GELU(), nn.Linear(D, D)))
        self.layers = layers
        if last:
            self.norm = RMSNorm()
            if not first:
                self.wte = nn.Embedding.from_pretrained(rand(seed, VOCAB, D) * 0.5, freeze=False)

    def forward(self, x):
        x = self.wte(x) if self.first else x
        for i in self.layers:
            x = x + getattr(self, f"layer{i}")(x)
        return HeadLinear.apply(self.norm(x), self.wte.weight, self.later) if self.last else x

    @torch.no_grad()
    def finish_wgrad(self):
        for grad, x in self.later:
            self.wte.weight.grad += grad.flatten(0, 1).t() @ x.flatten(0, 1)
        self.later.clear()


class ShardedAdam:
    """Weights and gradients are views of two buffers, of which each replica steps its half."""
    def __init__(self, params, group, lr):
        self.group, self.dp = group, dist.get_world_size(group) if group is not None else 1
        size = -sum(p.numel() for p in params) % self.dp + sum(p.numel() for p in params)
        self.data, self.grad, at = torch.zeros(size), torch.zeros(size), 0
        for p in params:
            view = self.data[at:at + p.numel()].view_as(p)
            view.copy_(p.data)
            p.data, p.grad = view, self.grad[at:at + p.numel()].view_as(p)
            at += p.numel()
        rank, part = dist.get_rank(group) if group is not None else 0, size // self.dp
        self.shards = [self.data[i * part:(i + 1) * part] for i in range(self.dp)]
        self.own = nn.Parameter(self.shards[rank].clone())
        self.own.grad = self.grad[rank * part:(rank + 1) * part]
        self.adam = torch.optim.Adam([self.own], lr=lr, betas=(0.9, 0.95), eps=1e-5)

    def reduce_scatter(self):
        """Of the buffer only the own half becomes the mean."""
        got = torch.empty_like(self.grad)
        dist.all_to_all_single(got, self.grad, group=self.group)
        self.own.grad.copy_(got.view(self.dp, -1).sum(0) / self.dp)

    def step(self):
        self.adam.step()
        if self.dp > 1:
            dist.all_gather(self.shards, self.own.data, group=self.group)
        else:
            self.data.copy_(self.own.data)


def train_pipezero(rank, fault, seed, n=4):
    pp, dp_rank = rank // 2, rank % 2
    dp = pair = None
    if n > 1:
        dp, pair = grid(rank, [[0, 1], [2, 3]]), grid(rank, [[0, 2], [1, 3]])
    stage = ZeroStage(seed + 40, [0, 1] if n == 1 else [pp], pp == 0, n == 1 or pp == 1)
    opt = ShardedAdam(list(stage.parameters()), dp, 0.02)
    for step in range(2):
        opt.grad.zero_()
        t = ids(seed * 17 + step, VOCAB, 4, 6)
        for t in (t if n == 1 else t.chunk(2)[dp_rank]).chunk(2):
            if pp == 0:
                x = stage(t[:, :-1])
            else:
                x = torch.empty(len(t), 5, D)
                dist.recv(x, dp_rank)
                x.requires_grad_()
            if n > 1 and pp == 0:
                dist.send(x.detach(), 2 + dp_rank)
                grad = torch.empty_like(x)
                dist.recv(grad, 2 + dp_rank)
                x.backward(grad)
            else:
                logits = x if n == 1 else stage(x)
                (F.cross_entropy(logits.flatten(0, 1), t[:, 1:].flatten()) / 2).backward()
                if n > 1:
                    dist.send(x.grad, dp_rank)
        if fault != "latewgrad":
            stage.finish_wgrad()
        if n > 1:
            if fault == "shardorder":
                opt.reduce_scatter()
            dist.all_reduce(stage.wte.weight.grad, group=pair)
            if fault != "shardorder":
                opt.reduce_scatter()
        if fault == "latewgrad":
            stage.finish_wgrad()
        opt.step()
    return {k: p.data for k, p in stage.named_parameters()}


# --- encdec: a T5 with the encoder on one rank and the decoder on the other; both embed ----------------------------

class Embed(nn.Module):
    def __init__(self):
        super().__init__()
        self.word, self.pos = nn.Parameter(torch.randn(VOCAB, D) * 0.5), nn.Parameter(torch.randn(6, D) * 0.3)

    def forward(self, t):
        return F.embedding(t, self.word) + self.pos[:t.shape[1]]


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.mix, self.ff = nn.LayerNorm(D), nn.Linear(D, D), nn.Linear(D, D)

    def forward(self, x):
        h = self.norm(x)
        return x + self.ff(F.relu(h + self.mix(h.mean(1, keepdim=True))))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.kv = nn.Linear(D, D, bias=False), nn.Linear(D, 2 * D, bias=False)
        self.o, self.norm, self.head = nn.Linear(D, D), nn.LayerNorm(D), nn.Linear(D, VOCAB)

    def forward(self, x, memory):
        k, v = self.kv(memory).chunk(2, -1)
        x = x + self.o((self.q(x) @ k.transpose(1, 2) / 4).softmax(-1) @ v)
        return self.head(self.norm(x))


class T5Part(nn.Module):
    """Seeds are those of the stage; what is tied comes from the first stage that has it."""
    tied = ("word", "pos")

    def __init__(self, seed, stage, n, fault):
        super().__init__()
        torch.manual_seed(seed + stage)
        self.embed = Embed()
        if stage == 0:
            torch.manual_seed(seed + 100)
            self.encoder = Encoder()
        if stage == n - 1:
            torch.manual_seed(seed + 200)
            self.decoder = Decoder()
        if n > 1 and fault != "tiedinit":
            for name in self.tied:
                dist.broadcast(getattr(self.embed, name).data, 0)

    def forward(self, t, memory=None):
        return self.encoder(self.embed(t)) if memory is None else self.decoder(self.embed(t), memory)

    def reduce_tied_grads(self, names):
        works = [dist.all_reduce(getattr(self.embed, name).grad, async_op=True) for name in names]
        for work in works:
            work.wait()


def train_encdec(rank, fault, seed, n=2):
    part = T5Part(seed + 60, rank, n, fault)
    opt = torch.optim.AdamW(part.parameters(), lr=0.01, eps=1e-5)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / 2))
    for step in range(3):
        opt.zero_grad()
        for acc in range(2):
            src, tgt = ids(seed * 41 + 2 * step + acc, VOCAB, 2, 6), ids(seed * 43 + 2 * step + acc, VOCAB, 2, 5)
            if rank == 0:
                memory = part(src)
            else:
                memory = torch.empty(2, 6, D)
                dist.recv(memory, 0)
                memory.requires_grad_()
            if n > 1 and rank == 0:
                dist.send(memory.detach(), 1)
                grad = torch.empty_like(memory)
                dist.recv(grad, 1)
                memory.backward(grad)
                continue
            logits = part(tgt[:, :-1], memory)
            (F.cross_entropy(logits.flatten(0, 1), tgt[:, 1:].flatten()) / 2).backward()
            if n > 1:
                dist.send(memory.grad, 0)
        if n > 1:
            part.reduce_tied_grads(part.tied[:1] if fault == "tiedattr" else part.tied)
        opt.step()
        sched.step()
    return ends(part)


# --- mtp: the last stage predicts two tokens, for which it has a replica of the first one's embedding --------------

class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.w13, self.w2 = RMSNorm(), nn.Linear(D, 4 * D, bias=False), nn.Linear(2 * D, D, bias=False)
        self.shift = nn.Parameter(torch.full((D,), 0.5))

    def forward(self, x):
        h = self.norm(x)
        a, b = self.w13(h + self.shift * F.pad(h, (0, 0, 1, 0))[:, :-1]).chunk(2, -1)
        return x + self.w2(F.silu(a) * b)


class MtpStage(nn.Module):
    def __init__(self, seed, first, last):
        super().__init__()
        self.first, self.last = first, last
        torch.manual_seed(seed)
        full = nn.Embedding(VOCAB, D), Layer(), Layer(), Layer(), nn.Linear(2 * D, D), nn.Linear(D, VOCAB)
        self.tok_embeddings = full[0]
        if first:
            self.layer0 = full[1]
        if last:
            self.layer1, self.mtp_layer, self.mtp_proj, self.output = full[2:]
            self.norm, self.mtp_norm = RMSNorm(), RMSNorm()

    def forward(self, t, h=None):
        if self.first:
            h = self.layer0(self.tok_embeddings(t[:, :-2]))
        if not self.last:
            return h
        h = self.layer1(h)
        main = F.cross_entropy(self.output(self.norm(h)).flatten(0, 1), t[:, 1:-1].flatten())
        e = self.tok_embeddings(t[:, 1:-1])
        h = self.mtp_layer(self.mtp_proj(torch.cat([self.mtp_norm(h), e], -1)))
        return main + 0.3 * F.cross_entropy(self.output(self.norm(h)).flatten(0, 1), t[:, 2:].flatten())


def train_mtp(rank, fault, seed, n=2):
    stage = MtpStage(seed + 80, rank == 0, rank == n - 1)
    opt = torch.optim.AdamW(stage.parameters(), lr=0.015, betas=(0.9, 0.95), eps=1e-5)
    for step in range(2):
        opt.zero_grad()
        for t in ids(seed * 23 + step, VOCAB, 6, 7).chunk(3):
            if n == 1:
                (stage(t) / 3).backward()
            elif rank == 0:
                h = stage(t)
                dist.send(h.detach(), 1)
                grad = torch.empty_like(h)
                dist.recv(grad, 1)
                torch.autograd.backward(h, grad)
            else:
                h = torch.empty(2, 5, D)
                dist.recv(h, 0)
                (stage(t, h.requires_grad_()) / 3).backward()
                dist.send(h.grad, 0)
        if n > 1 and fault != "mtpembed":
            dist.all_reduce(stage.tok_embeddings.weight.grad)
        opt.step()
    return ends(stage)


# --- moeep: data parallel ranks with two experts each, to which tokens are sent -----------------------------------

class SendTokens(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, give, take):
        ctx.splits = give, take
        out = x.new_empty(sum(take), *x.shape[1:])
        dist.all_to_all_single(out, x.contiguous(), take, give)
        return out

    @staticmethod
    def backward(ctx, grad):
        give, take = ctx.splits
        out = grad.new_empty(sum(give), *grad.shape[1:])
        dist.all_to_all_single(out, grad.contiguous(), give, take)
        return out, None, None


class Experts(nn.Module):
    def __init__(self, total, rank, n):
        super().__init__()
        self.w1, self.w2 = (shard(torch.randn(total, *s) * 0.3, rank, n) for s in ((D, 2 * D), (2 * D, D)))

    def forward(self, x, which):
        """The tokens of each expert, in the order they came in."""
        out = torch.zeros_like(x)
        for e, (w1, w2) in enumerate(zip(self.w1, self.w2)):
            rows = (which == e).nonzero()[:, 0]
            out = out.index_add(0, rows, F.relu(x[rows] @ w1) @ w2)
        return out


class SwitchLayer(nn.Module):
    def __init__(self, rank, n, total=4):
        super().__init__()
        self.n, self.per = n, total // n
        self.gate, self.experts = nn.Linear(D, total, bias=False), Experts(total, rank, n)

    def forward(self, x):
        prob, expert = self.gate(x).softmax(-1).max(-1)
        if self.n == 1:
            return prob[:, None] * self.experts(x, expert)
        order = expert.argsort(stable=True)
        give = torch.bincount(expert // self.per, minlength=self.n)
        take = torch.empty_like(give)
        dist.all_to_all_single(take, give)
        give, take = give.tolist(), take.tolist()
        which = SendTokens.apply(expert[order] % self.per, give, take)
        y = SendTokens.apply(self.experts(SendTokens.apply(x[order], give, take), which), take, give)
        return prob[:, None] * torch.zeros_like(x).index_copy(0, order, y)


class SwitchNet(nn.Module):
    def __init__(self, rank, n):
        super().__init__()
        self.inp, self.ln, self.moe, self.out = nn.Linear(6, D), nn.LayerNorm(D), SwitchLayer(rank, n), nn.Linear(D, 3)

    def forward(self, x):
        x = self.inp(x)
        return self.out(x + self.moe(self.ln(x)))


def train_moeep(rank, fault, seed, n=2):
    torch.manual_seed(seed + 7)
    net = SwitchNet(rank, n)
    experts = list(net.moe.experts.parameters())
    dense = [p for k, p in net.named_parameters() if "experts" not in k]
    opt = torch.optim.SGD([{"params": dense}, {"params": experts}], lr=0.4, momentum=0.9)
    for step in range(3):
        x, y = (t.chunk(n)[rank] for t in (rand(seed * 13 + step, 24, 6), rand(seed * 13 + step + 6, 24, 3)))
        opt.zero_grad()
        F.mse_loss(net(x), y).backward()
        if n > 1:
            for p in dense:
                dist.all_reduce(p.grad)
                p.grad /= n
            for p in experts:   # of all ranks' losses already
                if fault != "epdivide":
                    p.grad /= n
        square = sum(p.grad.norm() ** 2 for p in experts)
        if n > 1 and fault not in ("epnorm", "normmean"):
            dist.all_reduce(square)
        norm = (square + sum(p.grad.norm() ** 2 for p in dense)).sqrt()
        if fault == "normmean":
            dist.all_reduce(norm)
            norm /= n
        for p in net.parameters():
            p.grad *= (0.3 / norm).clamp(max=1.0)
        opt.step()
    return ends(net)


# --- moetp: tensor parallel ranks that have all tokens, and each its experts and its half of the shared one --------

class Combine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, fault):
        ctx.fault, x = fault, x.clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        if ctx.fault == "reducetwice":
            grad = grad.clone()
            dist.all_reduce(grad)
        return grad, None


class MoeTp(nn.Module):
    def __init__(self, rank, n, fault, total=4, top_k=2):
        super().__init__()
        self.rank, self.n, self.fault, self.total, self.top_k = rank, n, fault, total, top_k
        self.router, self.experts = nn.Linear(D, total, bias=False), Experts(total, rank, n)
        self.shared_up = shard(nn.Linear(D, 2 * D).weight, rank, n)
        self.shared_down = shard(nn.Linear(2 * D, D).weight, rank, n, 1)

    def forward(self, x):
        probs = self.router(x).softmax(-1)
        top, chosen = probs.topk(self.top_k, -1)
        load = F.one_hot(chosen, self.total).sum((0, 1)).float() / chosen.numel()
        aux = self.total * (load * probs.mean(0)).sum()
        if self.n > 1:
            x = Enter.apply(x)
            top = Enter.apply(top) if self.fault != "routertp" else top
        out = F.linear(F.silu(F.linear(x, self.shared_up)), self.shared_down)
        per = self.total // self.n
        for k in range(self.top_k):
            out = out + top[:, k:k + 1] * self.experts(x, chosen[:, k] - self.rank * per)
        return (out if self.n == 1 else Combine.apply(out, self.fault)), aux


class MoeTpNet(nn.Module):
    def __init__(self, rank, n, fault):
        super().__init__()
        self.embed, self.norm1, self.norm2 = nn.Linear(5, D), RMSNorm(), RMSNorm()
        self.moe1, self.moe2, self.head = MoeTp(rank, n, fault), MoeTp(rank, n, fault), nn.Linear(D, 4)

    def forward(self, x):
        x, total = self.embed(x), 0.0
        for norm, moe in ((self.norm1, self.moe1), (self.norm2, self.moe2)):
            y, aux = moe(norm(x))
            x, total = x + y, total + aux
        return self.head(x), total


def train_moetp(rank, fault, seed, n=2):
    torch.manual_seed(seed + 9)
    net = MoeTpNet(rank, n, fault)
    opt = torch.optim.Adagrad(net.parameters(), lr=0.02, eps=1e-4)
    for step in range(2):
        x, y = rand(seed * 19 + step, 10, 5), ids(seed * 19 + step + 4, 4, 10)
        opt.zero_grad()
        logits, aux = net(x)
        (F.cross_entropy(logits, y) + 0.05 * aux).backward()
        opt.step()
    return ends(net)


# --- moeedp: two groups of two expert parallel ranks; tokens and probabilities are gathered in a group -------------

class GatherMoe(nn.Module):
    def __init__(self, rank, ep, fault, total=4):
        super().__init__()
        self.ep, self.fault, self.total = ep, fault, total
        n = 1 if ep is None else 2
        self.first = rank % n * (total // n)
        self.router, self.experts = nn.Linear(D, total), Experts(total, rank % n, n)

    def forward(self, x):
        logits = self.router(x)
        probs, z = logits.softmax(-1), logits.logsumexp(-1).square().mean()
        if self.ep is not None:
            x = GatherSeq.apply(x, self.ep)
            if self.fault == "gatedetach":
                parts = [torch.empty_like(probs) for _ in range(2)]
                dist.all_gather(parts, probs.detach(), group=self.ep)
                probs = torch.cat(parts)
            else:
                probs = GatherSeq.apply(probs, self.ep)
        top, chosen = probs.max(-1)
        out = top[:, None] * self.experts(x, chosen - self.first)
        return (out if self.ep is None else ScatterSeq.apply(out, self.ep)), z


class Tagger(nn.Module):
    def __init__(self, rank, ep, fault):
        super().__init__()
        self.word, self.norm, self.moe = nn.Embedding(VOCAB, D), nn.LayerNorm(D), GatherMoe(rank, ep, fault)
        self.tag = nn.Linear(D, 6)

    def forward(self, t):
        x = self.word(t).flatten(0, 1)
        y, z = self.moe(self.norm(x))
        return self.tag(x + y), z


def train_moeedp(rank, fault, seed, n=4):
    ep = edp = None
    if n > 1:
        ep, edp = grid(rank, [[0, 1], [2, 3]]), grid(rank, [[0, 2], [1, 3]])
    torch.manual_seed(seed + 11)
    model = Tagger(rank, ep, fault)
    opt = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9, weight_decay=0.01)
    sched = torch.optim.lr_scheduler.ExponentialLR(opt, 0.8)
    for step in range(3):
        t, y = (v.chunk(n)[rank] for v in (ids(seed * 29 + step, VOCAB, 8, 4), ids(seed * 29 + step + 3, 6, 8, 4)))
        opt.zero_grad()
        logits, z = model(t)
        (F.cross_entropy(logits, y.flatten()) + 0.01 * z).backward()
        for name, p in model.named_parameters():
            if n == 1:
                continue
            if "experts" not in name:
                dist.all_reduce(p.grad)
            elif fault != "edpskip":
                dist.all_reduce(p.grad, group=edp)
            p.grad.div_(2 if fault == "edpdiv" and "experts" in name else n)
        opt.step()
        sched.step()
    return ends(model)


PROGRAMS = {"mqa": (2, train_mqa), "lora": (2, train_lora), "ulysses": (4, train_ulysses), "pipe": (2, train_pipe),
            "pipezero": (4, train_pipezero), "encdec": (2, train_encdec), "mtp": (2, train_mtp),
            "moeep": (2, train_moeep), "moetp": (2, train_moetp), "moeedp": (4, train_moeedp)}
WHOLE = {name: lambda seed, f=f: f(0, None, seed, 1) for name, (_, f) in PROGRAMS.items()}

FAULTS = {
    # 1: weights that each rank has whole, their gradients the sum of what ranks have
    # Keys and values of one head, used by each rank's queries: what flows back from them into the norm is not summed:
    # https://github.com/bigcode-project/Megatron-LM/pull/37
    "kvinput": ("mqa", r"linear\.[27]\.|layer_norm\.[02]\.backward|view_as\.[02]|all_reduce\.[57]\.|\.ln1\.|sgd", "01"),
    # Of those the weights are summed and the biases not: https://github.com/bigcode-project/Megatron-LM/pull/12
    "kvbias": ("mqa", r"linear\.[27]\.backward|\.kv\.|cat|all_reduce\.8\.|sgd", "01"),
    # Each rank adds a part of the bias, and has a part of its gradient:
    # https://github.com/pytorch/torchtitan/pull/4332
    "biasscale": ("mqa", r"div\.[1245]\.|linear\.(3|5|8|10)\.|all_reduce\.[0-3]\.|\.(proj|down)\.|sgd", "01"),
    # The factor of an adapter that is not split sees a part of the tokens:
    # https://github.com/modelscope/mcore-bridge/pull/173
    "lorafactor": ("lora", r"linear\.(0|5|6|11|13|18|19|24)\.backward|\.(mix|out|fc1|fc2)\.|flatten_dense|"
                   r"all_reduce\.28\.|sgd", "01"),
    # The hook of norms averages over the parts of a sequence: https://github.com/EleutherAI/gpt-neox/pull/1259
    "spmean": ("lora", r"all_reduce\.([4589]|1[2389]|2[2367])\.|layer_norm\.\d\.backward|div\.([3-8]|1[2-7])\.|"
               r"\.norms\.|sgd", "01"),
    # The group of replicas, without the ranks with other tokens: https://github.com/ByteDance-Seed/VeOmni/pull/1115
    "spgroup": ("ulysses", r"all_reduce|Tensor\.div_|flatten_dense|parameters_grad|adamw", "0123"),
    # 2: weights that stages share
    # Nothing sums the two gradients: https://github.com/uw-syfi/piper/issues/13
    "tiednosync": ("pipe", r"embedding\.\d\.backward|linear\.[37]\.backward|\.word\.|sgd", "01"),
    # The norm of the model has it twice: https://github.com/NVIDIA/Megatron-LM/pull/7227
    "tiednorm": ("pipe", r"square|Tensor\.sum\.|add\.([4-9]|1\d)\.forward|all_reduce\.1\.|sqrt|__rdiv__|clamp|mul_",
                 "01"),
    # Replicas' gradients are scattered before the stages' are summed:
    # https://github.com/NVIDIA/Megatron-LM/issues/844
    "shardorder": ("pipezero", r"all_reduce\.0\.|all_to_all_single\.0\.|\.wte\.|adam\.", "0123"),
    # The deferred gradient of the head comes after the sums: https://github.com/NVIDIA/Megatron-LM/issues/1012
    "latewgrad": ("pipezero", r"matmul\.[45]\.|add_\.|all_reduce\.0\.|all_to_all_single\.0\.|"
                  r"embedding\.\d\.backward|\.wte\.|adam\.", "0123"),
    # Of a module with two tied weights one is summed: https://github.com/deepspeedai/DeepSpeed/pull/2035
    "tiedattr": ("encdec", r"__getitem__\.\d\.backward|add\.[023]\.backward|\.embed\.|adamw", "01"),
    # Each stage draws its own: https://github.com/uw-syfi/piper/pull/25
    "tiedinit": ("encdec", r"embedding\.\d\.forward|__getitem__\.[0-4]\.forward|add\.[023]\.forward|"
                 r"Tensor\.mul\.\d\.forward|broadcast|\.embed\.|adamw", "01"),
    # The replica of an embedding in the stage that predicts a second token:
    # https://github.com/pytorch/torchtitan/issues/933
    "mtpembed": ("mtp", r"embedding\.\d\.backward|\.tok_embeddings\.|adamw", "01"),
    # 3: mixtures of experts
    # Gradients of experts are of all ranks' mean losses: https://github.com/NVIDIA/Megatron-LM/pull/5956
    "epdivide": ("moeep", r"all_to_all_single\.[45]\.|(matmul|unbind|index_add)\.\d\.backward|Tensor\.norm\.[01]\.|"
                 r"\.experts\.|sgd\.1\.", "01"),
    # Each rank clips by the norm of its experts: https://github.com/NVIDIA-NeMo/Automodel/issues/3816
    "epnorm": ("moeep", r"Tensor\.norm\.[01]\.|__pow__\.[01]\.|Tensor\.add\.([1-9]|10)\.forward|sqrt|__rdiv__|clamp|"
               r"mul_|sgd", "01"),
    # Norms of different experts are averaged: https://github.com/deepspeedai/DeepSpeed/issues/8475
    "normmean": ("moeep", r"Tensor\.norm\.[01]\.|__pow__\.[01]\.|Tensor\.add\.([1-9]|10)\.forward|sqrt|"
                 r"all_reduce\.7\.|div_\.9\.|__rdiv__|clamp|mul_", "01"),
    # The router's gradient is of the rank's experts: https://github.com/pytorch/torchtitan/issues/2387
    "routertp": ("moetp", r"topk\.[01]\.|softmax\.[01]\.backward|linear\.[14]\.backward|"
                 r"Tensor\.mul\.(4|5|10|11)\.backward|__getitem__\.(0|6|12|18)\.backward|\.router\.|adagrad", "01"),
    # Experts' outputs are summed, and their gradients too: https://github.com/InternLM/xtuner/pull/1004
    "reducetwice": ("moetp", r"all_reduce\.[25]\.|clone\.[25]\.|Tensor\.add\.[27]\.backward|linear\.[36]\.backward|"
                    r"\.moe[12]\.", "01"),
    # The number of the expert's replicas as divisor: https://github.com/deepspeedai/DeepSpeed/pull/6546
    "edpdiv": ("moeedp", r"all_reduce\.[89]\.|div_\.[56]\.|\.experts\.|sgd", "0123"),
    # The replicas of an expert each have their own gradient: https://github.com/facebookresearch/fairseq/issues/4220
    "edpskip": ("moeedp", r"(matmul|unbind|index_add)\.\d\.backward|div_\.[56]\.|\.experts\.|sgd", "0123"),
    # Probabilities are gathered by what has no gradient: https://github.com/NVIDIA-NeMo/Automodel/pull/2995
    "gatedetach": ("moeedp", r"all_gather|detach|cat\.|Tensor\.max\.|softmax\.0\.|linear\.0\.backward|\.router\.",
                   "0123"),
}
