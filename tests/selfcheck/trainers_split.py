"""Small trainers: layers whose weights or tokens are split over ranks, and what public trackers report to go wrong
with the weights that each rank has whole, whose gradients are the sum of what ranks have.

Each train(rank, fault, seed, n) is a user's program on n ranks; with n = 1 it is what one process does that has the
whole model and batch, without the collectives.
"""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors

from trainers_kit import D, Enter, GatherSeq, RMSNorm, ScatterSeq, ends, ids, my_groups, rand, shard


# --- mqa: a researcher's script; the heads of the queries are split, the one head of keys and values is not --------

class Leave(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad


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
        sp, dp = my_groups(rank)
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


PROGRAMS = {"mqa": (2, train_mqa), "lora": (2, train_lora), "ulysses": (4, train_ulysses)}
WHOLE = {name: lambda seed, f=f: f(0, None, seed, 1) for name, (_, f) in PROGRAMS.items()}

FAULTS = {
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
}
