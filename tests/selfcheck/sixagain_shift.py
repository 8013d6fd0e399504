"""Context parallel training without attention: a rank gives the last token of its part to the next one."""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

from sixagain_kit import choose, state

D, VOCAB, TOKENS = 12, 18, 8


def pass_on(t, to, source):
    """Sends t to a rank and gives what another sends; those at the ends have nobody."""
    got = torch.zeros_like(t)
    work = dist.isend(t.contiguous(), to) if 0 <= to < dist.get_world_size() else None
    if 0 <= source < dist.get_world_size():
        dist.recv(got, source)
    if work is not None:
        work.wait()
    return got


class FromPrevious(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        r = dist.get_rank()
        return pass_on(x, r + 1, r - 1)

    @staticmethod
    def backward(ctx, g):
        r = dist.get_rank()
        return pass_on(g, r - 1, r + 1)


class TokenShift(nn.Module):
    """A mixer as of RWKV: each token and the one before it."""
    def __init__(self, n):
        super().__init__()
        self.n, self.mix = n, nn.Parameter(torch.rand(D))
        self.key, self.receptance = nn.Linear(D, 2 * D), nn.Linear(D, D)
        self.value = nn.Linear(2 * D, D)

    def forward(self, x):
        last = x[-1:]
        first = FromPrevious.apply(last) if self.n > 1 else torch.zeros_like(last)
        before = torch.cat([first, x[:-1]])
        h = torch.lerp(before, x, self.mix)
        return x + torch.sigmoid(self.receptance(h)) * self.value(F.relu(self.key(h)).square())


class Rwkv(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.embed, self.norm = nn.Embedding(VOCAB, D), nn.LayerNorm(D)
        self.blocks = nn.Sequential(TokenShift(n), TokenShift(n))
        self.head = nn.Linear(D, VOCAB, bias=False)

    def forward(self, ids):
        return self.head(self.blocks(self.norm(self.embed(ids))))


def loss_func(logits, labels, n, fault):
    """The mean over all tokens, of which the rank has a part; what it is times is what gradients are divided by."""
    tokens = torch.tensor(float(labels.numel()))
    if n > 1:
        dist.all_reduce(tokens)
    loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum") / tokens
    return loss * (1 if fault == "spsize" else n)


class GradBuffer:
    """The gradients of all weights in one tensor."""
    def __init__(self, params):
        self.data, start = torch.zeros(sum(p.numel() for p in params)), 0
        for p in params:
            p.grad = self.data[start:start + p.numel()].view_as(p)
            start += p.numel()

    def finish(self, n, fault):
        """The average over those ranks that share the data, which those of a sequence do as well."""
        data_parallel = 1
        self.data /= data_parallel if fault == "dpgroup" else data_parallel * n
        dist.all_reduce(self.data)


def train_rwkv(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = Rwkv(n)
    buffer = GradBuffer(list(model.parameters()))
    opt = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.8)
    for s in range(2):
        ids = choose(100 * seed + s, VOCAB, TOKENS + 1, 2)
        buffer.data.zero_()
        logits = model(ids[:-1].chunk(n)[rank])
        loss_func(logits, ids[1:].chunk(n)[rank], n, fault).backward()
        if n > 1:
            buffer.finish(n, fault)
        opt.step()
    return state(model)


PROGRAMS = {"rwkv": (2, train_rwkv)}
WHOLE = {"rwkv": lambda seed: train_rwkv(0, None, seed, 1)}

FAULTS = {
    # The factor is the number of replicas, not of ranks: https://github.com/ByteDance-Seed/VeOmni/pull/338
    "spsize": ("rwkv", r"Tensor\.(mul\.2|div\.0|div_\.0)\.|cross_entropy|all_reduce\.1", "01"),
    # Gradients divided by the replicas' number: https://github.com/NVIDIA/Megatron-LM/issues/906
    "dpgroup": ("rwkv", r"Tensor\.(mul\.2|div\.0|div_\.0)\.|all_reduce\.1", "01"),
}
