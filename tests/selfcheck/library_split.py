"""Programs made of PyTorch's own parts for many ranks, as users put them together: layers whose
weights or tokens are split by hand, with torch.distributed.nn.functional and DistributedDataParallel; and what is
reported to go wrong.

Each train(rank, fault, seed, n) is a user's program; with n = 1 it is what one process does that has the whole
batch and model, without collectives.
"""
import torch
import torch.distributed as dist
import torch.distributed.nn.functional as dist_nn
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from library_kit import D, EPS, grid, integers, normal, result


# --- lora: adapters of a tensor parallel MLP, replicas of it in DistributedDataParallel -----------------------

class LoraMlp(nn.Module):
    """Of the hidden units each rank has a part: of the frozen weights, and of what is learnt for them."""
    def __init__(self, part, parts, group):
        super().__init__()
        self.parts, self.group = parts, group
        self.inward, self.norm, self.last_norm = nn.Linear(D, D), nn.LayerNorm(D), nn.LayerNorm(D)
        up, down = torch.randn(4 * D, D) * 0.3, torch.randn(D, 4 * D) * 0.3
        self.register_buffer("up", up.chunk(parts)[part])
        self.register_buffer("down", down.chunk(parts, 1)[part])
        self.lora_a = nn.Parameter(torch.randn(2, D) * 0.3)
        self.lora_b = nn.Parameter((torch.randn(4 * D, 2) * 0.3).chunk(parts)[part].clone())
        self.head = nn.Linear(D, 5)

    def forward(self, x):
        x = self.inward(x)
        h = self.norm(x)
        h = F.gelu(F.linear(h, self.up) + F.linear(F.linear(h, self.lora_a), self.lora_b))
        h = F.linear(h, self.down)
        if self.parts > 1:
            h = dist_nn.all_reduce(h, group=self.group)
        return self.head(self.last_norm(x + h))


def train_lora(rank, fault, seed, n=2):
    tp, dp = grid(rank, 2) if n > 1 else (None, None)
    torch.manual_seed(seed)
    model = LoraMlp(rank % n, n, tp)
    net = DDP(model, process_group=dp, broadcast_buffers=False) if n > 1 else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.3, total_steps=10, cycle_momentum=False)
    for step in range(2):
        x, y = normal(100 * seed + step, 4, 3, D), integers(100 * seed + step + 50, 5, 4, 3)
        if n > 1:
            x, y = x.chunk(2)[rank // n], y.chunk(2)[rank // n]
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x).flatten(0, 1), y.flatten())
        if fault != "tploss":
            loss = loss / n   # what is differentiated is the sum of what the ranks have
        loss.backward()
        for name, p in model.named_parameters():
            if n > 1 and name != "lora_b" and not (fault == "adapter" and name == "lora_a"):
                dist.all_reduce(p.grad, group=tp)
                if fault == "normmean" and "norm" in name:
                    p.grad /= n
        optimizer.step()
        schedule.step()
    return result(model)


# --- context: each rank has a part of the sequence; gradients are averaged by hooks ----------------------------

class Encoder(nn.Module):
    def __init__(self, rank, n):
        super().__init__()
        self.rank, self.n = rank, n
        self.position = nn.Parameter(torch.randn(8, 1, D) * 0.3)
        self.norm1, self.norm2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.attention = nn.MultiheadAttention(D, 2)
        self.mlp = nn.Sequential(nn.Linear(D, 2 * D), nn.SiLU(), nn.Linear(2 * D, D))
        self.head = nn.Linear(D, 6)

    def forward(self, x):
        x = x + self.position.chunk(self.n)[self.rank]
        mine = whole = self.norm1(x)
        if self.n > 1:
            whole = torch.cat(dist_nn.all_gather(mine))
        hidden = torch.ones(8, 8).triu(1).bool().chunk(self.n)[self.rank]
        x = x + self.attention(mine, whole, whole, attn_mask=hidden, need_weights=False)[0]
        return self.head(x + self.mlp(self.norm2(x)))


def train_context(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = Encoder(rank, n)

    def averaged(grad):
        grad = grad.contiguous().clone()
        dist.all_reduce(grad)
        return grad / n

    for name, p in model.named_parameters():
        if n > 1 and not (fault == "hooks" and name.startswith("norm2")):
            p.register_hook(averaged)
    optimizer = torch.optim.NAdam(model.parameters(), lr=0.02, eps=EPS)
    for step in range(2):
        x, y = normal(100 * seed + step, 8, 2, D), integers(100 * seed + step + 50, 6, 8, 2)
        mask = torch.ones(8, 2)
        mask[:3] = 0   # the prompt
        x, y, mask = (t.chunk(n)[rank] for t in (x, y, mask))
        losses = F.cross_entropy(model(x).flatten(0, 1), y.flatten(), reduction="none")
        valid = mask.sum()
        if n > 1 and fault != "valid":
            dist.all_reduce(valid)
            valid /= n   # as gradients are averaged
        optimizer.zero_grad()
        ((losses * mask.flatten()).sum() / valid).backward()
        optimizer.step()
    return result(model)


PROGRAMS = {"lora": (4, train_lora), "context": (2, train_context)}
WHOLE = {name: lambda seed, f=f: f(0, None, seed, 1) for name, (_, f) in PROGRAMS.items()}
FAULTS = {
    # The factor of an adapter that is whole on each rank: https://github.com/ISEEKYAN/Megatron-LM/pull/131
    "adapter": ("lora", r"lora_a|linear\.2\.backward|all_reduce\.2\.|sgd", "0123"),
    # Of norms the mean where it should be the sum: https://github.com/EleutherAI/gpt-neox/pull/1259
    "normmean": ("lora", r"all_reduce\.1[5-8]|div_|layer_norm\.\d\.backward|norm\.LayerNorm|sgd", "0123"),
    # The way back of torch.distributed.nn.all_reduce sums the same gradient of all ranks:
    # https://github.com/microsoft/ltp-megatron-lm/pull/68 https://github.com/pytorch/xla/issues/2989
    "tploss": ("lora", r"cross_entropy|all_reduce\.[1-9]", "0123"),
    # A check which weights are to be reduced does not know a norm: https://github.com/InternLM/InternEvo/pull/420
    "hooks": ("context", r"norm2\.|layer_norm\.1\.backward|nadam", "01"),
    # The number of valid tokens is that of the rank's part: https://github.com/NVIDIA/Megatron-LM/pull/7513
    "valid": ("context", r"Tensor\.(sum\.[01]|div\.0|mul\.1)\.", "01"),
}
