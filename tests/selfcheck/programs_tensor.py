"""Programs of programs.py with tensor and sequence parallel layers: gqa, a GPT of grouped queries; shard, a
mixture of experts that are split over tensor parallel ranks; lora, adapters of a frozen block."""
import torch
import torch.nn.functional as F
from torch import nn

from programs_base import Copy, Draw, Gather, Reduce, Scatter, grids, kept, total, world

D, HEADS, HD, VOCAB, T = 16, 4, 4, 24, 8


def rope(x):
    """Rotates pairs of (batch, heads, T, HD) by their position."""
    angle = torch.arange(x.shape[2])[:, None] / 10.0 ** torch.arange(0, HD, 2)[None, :]
    a, b = x[..., ::2], x[..., 1::2]
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)


class RMSNorm(nn.Module):
    def __init__(self, size, draw):
        super().__init__()
        self.weight = nn.Parameter(1 + draw(size))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


class Block(nn.Module):
    """Grouped queries with one key and value head, which all ranks have; x is (batch, T / ranks, D)."""
    def __init__(self, draw, r, n, group):
        super().__init__()
        self.group = group
        self.norm1, self.norm2 = RMSNorm(D, draw), RMSNorm(D, draw)
        self.qnorm, self.knorm = RMSNorm(HD, draw), RMSNorm(HD, draw)
        self.wq = nn.Parameter(draw.part(r, n, 0, HEADS * HD, D))
        self.wkv = nn.Parameter(draw(2 * HD, D))
        self.wo = nn.Parameter(draw.part(r, n, 1, D, HEADS * HD))
        self.bo = nn.Parameter(draw(D))
        self.w1 = nn.Parameter(draw.part(r, n, 0, 2 * D, D))
        self.w3 = nn.Parameter(draw.part(r, n, 0, 2 * D, D))
        self.w2 = nn.Parameter(draw.part(r, n, 1, D, 2 * D))

    def forward(self, x):
        h = Gather.apply(self.norm1(x), self.group, 1)
        q = F.linear(h, self.wq).unflatten(-1, (-1, HD)).transpose(1, 2)
        k, v = F.linear(h, self.wkv)[:, None].chunk(2, -1)
        q, k = rope(self.qnorm(q)), rope(self.knorm(k))
        a = q @ k.transpose(-1, -2) / HD ** 0.5
        a = a.masked_fill(torch.ones(T, T).triu(1).bool(), float("-inf")).softmax(-1) @ v
        x = x + Scatter.apply(F.linear(a.transpose(1, 2).flatten(2), self.wo), self.group, 1) + self.bo
        h = Gather.apply(self.norm2(x), self.group, 1)
        h = F.silu(F.linear(h, self.w1)) * F.linear(h, self.w3)
        return x + Scatter.apply(F.linear(h, self.w2), self.group, 1)


class Gpt(nn.Module):
    def __init__(self, draw, r, n, group):
        super().__init__()
        self.group, self.first, self.rows = group, r * VOCAB // n, VOCAB // n
        self.embed = nn.Parameter(draw.part(r, n, 0, VOCAB, D, std=1.0))
        self.blocks = nn.ModuleList(Block(draw, r, n, group) for _ in range(2))
        self.norm = RMSNorm(D, draw)
        self.head = nn.Parameter(draw.part(r, n, 0, VOCAB, D))

    def local(self, ids):
        """Of ids the local rows, and which are not there."""
        other = (ids < self.first) | (ids >= self.first + self.rows)
        return (ids - self.first).masked_fill(other, 0), other

    def forward(self, ids):
        at, other = self.local(ids)
        x = F.embedding(at, self.embed).masked_fill(other[..., None], 0.0)
        x = Scatter.apply(x, self.group, 1)
        for block in self.blocks:
            x = block(x)
        return F.linear(Gather.apply(self.norm(x), self.group, 1), self.head)

    def losses(self, logits, target):
        """The cross entropy of logits whose vocabulary is split."""
        top = logits.detach().amax(-1)
        if self.group is not None:
            total(top, self.group, op=torch.distributed.ReduceOp.MAX)
        logits = logits - top[..., None]
        at, other = self.local(target)
        right = logits.gather(-1, at[..., None])[..., 0].masked_fill(other, 0.0)
        return Reduce.apply(logits.exp().sum(-1), self.group).log() - Reduce.apply(right, self.group)


SPLIT = "wq", "wo", "w1", "w2", "w3", "embed", "head"
LEFT_OUT = {"norms": "norm1.weight", "qknorm": "qnorm.weight", "rowbias": ".bo", "kvheads": "wkv"}


def gqa(rank, fault, seed, ranks=4):
    tp, dp = (2, 2) if ranks > 1 else (1, 1)
    tp_group, dp_group = grids(rank, tp, dp)
    model = Gpt(Draw(seed), rank % tp, tp, tp_group)
    split = [p for n, p in model.named_parameters() if n.split(".")[-1] in SPLIT]
    whole = [p for n, p in model.named_parameters() if n.split(".")[-1] not in SPLIT]
    opt = torch.optim.AdamW([{"params": split, "weight_decay": 0.1}, {"params": whole, "weight_decay": 0.0}],
                            lr=0.01, eps=1e-3)
    warmup = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: (s + 1) / 4)
    data = Draw(seed + 100)
    for _ in range(3):
        ids, far = data.ints(VOCAB, 4, T + 1), data.ints(T - 2, 4) + 3
        ids, far = ids.chunk(dp)[rank // tp], far.chunk(dp)[rank // tp]
        mask = (torch.arange(T)[None] < far[:, None]).float()
        tokens = mask.sum()
        if fault == "tokens":
            tokens = tokens * dp
        else:
            total(tokens, dp_group)
        opt.zero_grad()
        loss = (model.losses(model(ids[:, :-1]), ids[:, 1:]) * mask).sum() / tokens
        loss.backward()
        for name, p in model.named_parameters():
            total(p.grad, dp_group)
            if name.split(".")[-1] in SPLIT or fault in LEFT_OUT and LEFT_OUT[fault] in name:
                continue
            total(p.grad, tp_group)
            if fault == "finalmean" and name == "norm.weight":
                p.grad /= tp
        square = sum(p.grad.pow(2).sum() for p in split)
        if fault != "clipnorm":
            total(square, tp_group)
        norm = (square + sum(p.grad.pow(2).sum() for p in whole)).sqrt()
        for p in model.parameters():
            p.grad.mul_((0.3 / (norm + 1e-6)).clamp(max=1.0))
        opt.step()
        warmup.step()
    return kept(model.named_parameters())


class Mix(nn.Module):
    """All tokens on all ranks, the experts split; what they gave is summed."""
    def __init__(self, draw, r, n, group, fault):
        super().__init__()
        self.group, self.first, self.fault = group, r * 4 // n, fault
        self.router = nn.Linear(D, 4)
        self.router.weight.data = draw(4, D)
        self.router.bias.data = draw(4)
        self.shared_in = nn.Parameter(draw.part(r, n, 0, 2 * D, D))
        self.shared_out = nn.Parameter(draw.part(r, n, 1, D, 2 * D))
        self.bias = nn.Parameter(draw(D))
        self.up = nn.Parameter(draw.part(r, n, 0, 4, D, D))
        self.down = nn.Parameter(draw.part(r, n, 0, 4, D, D))

    def forward(self, x, noise):
        logits = self.router(x * noise)
        if self.fault == "lowrouter" and self.first:
            low = [t.bfloat16() for t in (x, self.router.weight, self.router.bias)]
            logits = F.linear(*low).float()
        gate, at = logits.softmax(-1).topk(2)
        gate = gate / gate.sum(-1, keepdim=True)
        h = Copy.apply(x, self.group)
        if self.fault != "probs":
            gate = Copy.apply(gate, self.group)
        y = F.linear(F.gelu(F.linear(h, self.shared_in)), self.shared_out)
        if self.fault == "biasthere":
            y = y + self.bias
        for e in range(len(self.up)):
            t, k = torch.where(at == e + self.first)
            out = F.linear(F.gelu(F.linear(h[t], self.up[e])), self.down[e])
            y = y.index_add(0, t, out * gate[t, k][:, None])
        y = Reduce.apply(y, self.group)
        return y if self.fault == "biasthere" else y + self.bias


def shard(rank, fault, seed, ranks=2):
    group = world(ranks)
    draw = Draw(seed)
    norm = nn.LayerNorm(D)
    norm.weight.data += draw(D)
    mix = Mix(draw, rank, ranks, group, fault)
    head = nn.Linear(D, 3)
    head.weight.data, head.bias.data = draw(3, D), draw(3)
    if fault == "routerseed":
        mix.router.weight.data = Draw(seed + 7 + rank)(4, D)
    model = nn.ModuleDict({"norm": norm, "mix": mix, "head": head})
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    data = Draw(seed + 100)
    # What the router's inputs are shaken with is of a generator that all ranks seed alike.
    shake = torch.Generator().manual_seed(seed + 5 + (rank if fault == "jitter" else 0))
    for _ in range(3):
        x, y = data(12, D, std=1.0), data(12, 3, std=1.0)
        noise = 0.7 + 0.6 * torch.rand(12, D, generator=shake)
        loss = F.smooth_l1_loss(head(x + mix(norm(x), noise)), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return kept(model.named_parameters())


class Adapter(nn.Module):
    """y = W x + B A x; W is frozen."""
    def __init__(self, weight, a, b):
        super().__init__()
        self.weight = nn.Parameter(weight, requires_grad=False)
        self.lora_a, self.lora_b = nn.Parameter(a), nn.Parameter(b)

    def forward(self, x):
        return F.linear(x, self.weight) + 2.0 * F.linear(F.linear(x, self.lora_a), self.lora_b)


def lora(rank, fault, seed, ranks=3):
    """A frozen block with a sequence parallel norm; the first layer's A, the second's B are on all ranks."""
    group, draw, wide = world(ranks), Draw(seed), 3 * D
    norm = nn.LayerNorm(D)
    norm.weight.data += draw(D)
    norm.bias.data += draw(D)
    up = Adapter(draw.part(rank, ranks, 0, wide, D), draw(4, D), draw.part(rank, ranks, 0, wide, 4))
    down = Adapter(draw.part(rank, ranks, 1, D, wide), draw.part(rank, ranks, 1, 4, wide), draw(D, 4))
    scale = nn.Parameter(1 + draw(D))
    head = nn.Linear(D, 5)
    head.weight.data, head.bias.data = draw(5, D), draw(5)
    head.requires_grad_(False)
    named = [(f"{m}.{n}", p) for m, o in (("norm", norm), ("up", up), ("down", down))
             for n, p in o.named_parameters() if p.requires_grad] + [("scale", scale)]
    opt = torch.optim.Adam([p for _, p in named], lr=0.01, eps=1e-3)
    alone = {"loraa": "up.lora_a", "lorab": "down.lora_b", "normbias": "norm.bias", "layerscale": "scale"}
    data = Draw(seed + 100)
    for _ in range(2):
        x, y = data(2, 9, D, std=1.0), data.ints(5, 2, 9)
        part = x.chunk(ranks, 1)[rank]
        h = F.gelu(up(Gather.apply(norm(part), group, 1)))
        out = part + scale * Scatter.apply(down(h), group, 1)
        # The sum over a rank's tokens, over all of them.
        wanted = y.chunk(ranks, 1)[rank].flatten()
        loss = F.cross_entropy(head(out).flatten(0, 1), wanted, reduction="sum") / 18
        opt.zero_grad()
        loss.backward()
        for name, p in named:
            # The B of the second layer, too: each rank has it of its part of A x.
            if name not in ("up.lora_b", "down.lora_a") and name != alone.get(fault):
                total(p.grad, group)
        opt.step()
    return kept(named)


PROGRAMS = {"gqa": (4, gqa), "shard": (2, shard), "lora": (3, lora)}
WHOLE = {"gqa": lambda seed: gqa(0, None, seed, 1), "shard": lambda seed: shard(0, None, seed, 1),
         "lora": lambda seed: lora(0, None, seed, 1)}
# What a bug's place may be called, and the ranks that may be named; above each, a report of such a one.
FAULTS = {
    # https://github.com/NVIDIA/TransformerEngine/issues/435
    "norms": ("gqa", r"mul\.\d+\.backward|norm1\.|adamw", "0123"),
    # https://github.com/NVIDIA-NeMo/RL/issues/3716
    "qknorm": ("gqa", r"mul\.\d+\.backward|qnorm\.|adamw", "0123"),
    # https://github.com/NVIDIA/Megatron-LM/pull/236
    "rowbias": ("gqa", r"add\.\d+\.backward|Block\.parameters_grad|adamw", "0123"),
    # https://github.com/bigcode-project/Megatron-LM/issues/35
    "kvheads": ("gqa", r"linear\.\d+\.backward|Block\.parameters_grad|adamw", "0123"),
    # https://github.com/EleutherAI/gpt-neox/pull/1259
    "finalmean": ("gqa", r"mul\.\d+\.backward|Module\.norm\.|div_|adamw", "0123"),
    # https://github.com/hpcaitech/ColossalAI/pull/4837
    "clipnorm": ("gqa", r"sqrt|clamp|mul_|sum|pow|__rdiv__|adamw", "0123"),
    # https://github.com/pytorch/torchtitan/pull/2206
    "tokens": ("gqa", r"Tensor\.(sum|div)\.\d+\.|Tensor\.mul\.0\.forward", "0123"),
    # https://github.com/pytorch/torchtitan/issues/2387
    "routerseed": ("shard", r"linear\.\d+\.|router|softmax|topk|sgd", "01"),
    # https://github.com/PaddlePaddle/PaddleFleet/pull/817
    "jitter": ("shard", r"Tensor\.(mul|add)\.\d+\.forward|linear\.\d+\.forward|router", "01"),
    # https://github.com/ViperEkura/AstrAI/pull/57
    "lowrouter": ("shard", r"bfloat16|linear\.\d+\.forward|Tensor\.(float|to|softmax|topk)|router", "01"),
    # https://github.com/pytorch/torchtitan/pull/2416
    "probs": ("shard", r"(mul|__getitem__|div|sum|topk|softmax|linear)\.\d+\.backward|router|sgd", "01"),
    # https://github.com/Wenyueh/MinivLLM/issues/80
    "biasthere": ("shard", r"Tensor\.add\.\d+\.|all_reduce|Mix\.parameters_grad", "01"),
    # https://github.com/modelscope/mcore-bridge/pull/173
    "loraa": ("lora", r"linear\.\d+\.backward|Adapter\.parameters_grad|adam\.", "012"),
    # https://github.com/modelscope/mcore-bridge/pull/173
    "lorab": ("lora", r"linear\.\d+\.backward|Adapter\.parameters_grad|adam\.", "012"),
    # https://github.com/NVIDIA/Megatron-LM/issues/1446
    "normbias": ("lora", r"layer_norm\.\d+\.backward|LayerNorm\.parameters_grad|adam\.", "012"),
    # https://github.com/NVIDIA/TransformerEngine/issues/441
    "layerscale": ("lora", r"mul\.\d+\.backward|adam\.", "012"),
}
