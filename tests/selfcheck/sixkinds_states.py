"""Programs whose replicas share the data and have state: bf16 weights with f32 masters, a codebook of running means,
and a sharded optimizer; and what is reported to go wrong in such.

The whole_NAME(seed) give what one process has that sees the batches of all ranks.
"""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from sixkinds_kit import choose, draw, state

D, N = 16, 2


# --- masters: weights in bf16; sums of gradients, masters and moments in f32 --------------------------------

class Bf16Optimizer:
    """Adam of f32 masters; gradients of micro batches are taken over into f32 sums as they come."""
    def __init__(self, model, lr=0.01):
        self.params = list(model.parameters())
        self.masters = [p.detach().float().clone() for p in self.params]
        self.sums = [torch.zeros_like(m) for m in self.masters]
        self.moments = [(torch.zeros_like(m), torch.zeros_like(m)) for m in self.masters]
        self.lr, self.t = lr, 0

    def take_over(self):
        for p, total in zip(self.params, self.sums):
            total.add_(p.grad.float())
            p.grad = None

    def all_reduce(self):
        flat = torch.cat([total.flatten() for total in self.sums])
        dist.all_reduce(flat)
        flat.div_(dist.get_world_size())
        for total, g in zip(self.sums, flat.split([total.numel() for total in self.sums])):
            total.copy_(g.view_as(total))

    def step(self):
        self.t += 1
        for p, master, g, (m, v) in zip(self.params, self.masters, self.sums, self.moments):
            m.mul_(0.9).add_(g, alpha=0.1)
            v.mul_(0.99).addcmul_(g, g, value=0.01)
            denominator = (v / (1 - 0.99 ** self.t)).sqrt_().add_(1e-5)
            master.addcdiv_(m, denominator, value=-self.lr / (1 - 0.9 ** self.t))
            p.data.copy_(master)
            g.zero_()


def bf16_model(seed):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(D, 32), nn.ReLU(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 4)).bfloat16()
    return model, Bf16Optimizer(model)


def bf16_loss(model, seed, step, rank, micro):
    s = 1000 * seed + 100 * step + 10 * rank + micro
    x, y = draw(s, 6, D).bfloat16(), draw(s + 500, 6, 4)
    return F.mse_loss(model(x).float(), y)


def masters(model, opt):
    return {name: master for (name, _), master in zip(model.named_parameters(), opt.masters)}


def train_masters(rank, fault, seed, micros=3):
    model, opt = bf16_model(seed)
    for step in range(2):
        for micro in range(micros):
            (bf16_loss(model, seed, step, rank, micro) / micros).backward()
            boundary = micro == micros - 1
            if boundary and fault == "bf16tail":
                opt.all_reduce()
                opt.take_over()
            else:
                opt.take_over()
                if boundary:
                    opt.all_reduce()
        opt.step()
    return masters(model, opt)


def whole_masters(seed, micros=3):
    model, opt = bf16_model(seed)
    for step in range(2):
        for r in range(N):
            for micro in range(micros):
                (bf16_loss(model, seed, step, r, micro) / micros).backward()
                opt.take_over()
        for total in opt.sums:
            total.div_(N)
        opt.step()
    return masters(model, opt)


# --- codec: an autoencoder with a codebook of running means, of which unused codes are drawn anew -----------

class EuclideanCodebook(nn.Module):
    """What follows the data is no weight: each rank keeps it by itself, from the statistics of all."""
    def __init__(self, fault, distributed, codes=10, dim=6, decay=0.6):
        super().__init__()
        self.fault, self.distributed, self.decay = fault, distributed, decay
        self.register_buffer("embed", torch.randn(codes, dim))
        self.register_buffer("cluster_size", torch.ones(codes))
        self.register_buffer("embed_avg", self.embed.clone())

    def all_reduce(self, t):
        if self.distributed and self.fault != "codebook":
            dist.all_reduce(t)

    def gather(self, x):
        if not self.distributed or self.fault == "deadcode":
            return x
        parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, x)
        return torch.cat(parts)

    @torch.no_grad()
    def follow(self, x, code):
        onehot = F.one_hot(code, len(self.embed)).to(x.dtype)
        size, total = onehot.sum(0), onehot.t() @ x
        self.all_reduce(size)
        self.all_reduce(total)
        self.cluster_size.mul_(self.decay).add_(size, alpha=1 - self.decay)
        self.embed_avg.mul_(self.decay).add_(total, alpha=1 - self.decay)
        self.embed.copy_(self.embed_avg / (self.cluster_size[:, None] + 1e-5))
        dead = self.cluster_size < 0.7
        samples = self.gather(x)[-len(self.embed):]
        self.embed.copy_(torch.where(dead[:, None], samples, self.embed))
        self.embed_avg.copy_(torch.where(dead[:, None], samples, self.embed_avg))
        self.cluster_size.masked_fill_(dead, 1.0)

    def forward(self, x):
        code = torch.cdist(x, self.embed).argmin(-1)
        out = F.embedding(code, self.embed)
        self.follow(x.detach(), code)
        return out


class Codec(nn.Module):
    def __init__(self, fault=None, distributed=True):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(D, 24), nn.ELU(), nn.Linear(24, 6))
        self.codebook = EuclideanCodebook(fault, distributed)
        self.decoder = nn.Sequential(nn.Linear(6, 24), nn.ELU(), nn.Linear(24, D))

    def forward(self, x):
        z = self.encoder(x)
        q = self.codebook(z)
        commit = F.mse_loss(z, q)
        return F.mse_loss(self.decoder(z + (q - z).detach()), x) + 0.25 * commit


def train_codec(rank, fault, seed):
    torch.manual_seed(seed)
    codec = Codec(fault)
    model = DDP(codec, broadcast_buffers=False)
    opt = torch.optim.Adam(model.parameters(), lr=0.01, betas=(0.5, 0.9))
    for step in range(3):
        opt.zero_grad()
        model(draw(1000 * seed + step, N * 12, D).chunk(N)[rank]).backward()
        opt.step()
    return state(codec, buffers=True)


def whole_codec(seed):
    torch.manual_seed(seed)
    codec = Codec(distributed=False)
    opt = torch.optim.Adam(codec.parameters(), lr=0.01, betas=(0.5, 0.9))
    for step in range(3):
        opt.zero_grad()
        codec(draw(1000 * seed + step, N * 12, D)).backward()
        opt.step()
    return state(codec, buffers=True)


# --- zero1: each rank steps its share of the weights and sends them to the others ---------------------------

class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, stride=2)
        self.norm, self.fc1, self.fc2 = nn.GroupNorm(2, 8), nn.Linear(72, 16), nn.Linear(16, 4)

    def forward(self, x):
        x = F.relu(self.norm(self.conv1(x)))
        return self.fc2(F.relu(self.fc1(F.relu(self.conv2(x)).flatten(1))))


class ShardedRMSprop:
    """ZeRO 1 by whole weights, which are given to the rank that has the least."""
    def __init__(self, model, rank, world, lr, fault):
        self.owned = [[] for _ in range(world)]
        for p in sorted(model.parameters(), key=lambda p: -p.numel()):
            min(self.owned, key=lambda ps: sum(p.numel() for p in ps)).append(p)
        self.linear = {id(p) for m in model.modules() if isinstance(m, nn.Linear) for p in m.parameters()}
        self.fault = fault
        self.optim = torch.optim.RMSprop(self.owned[rank], lr=lr, momentum=0.9)

    def step(self):
        self.optim.step()
        works = [dist.broadcast(p.data, src, async_op=True) for src, ps in enumerate(self.owned) for p in ps
                 if self.fault != "zerobroadcast" or id(p) not in self.linear]
        for work in works:
            work.wait()


def train_zero1(rank, fault, seed):
    torch.manual_seed(seed)
    model = ConvNet()
    opt = ShardedRMSprop(model, rank, N, 0.003, fault)
    for step in range(2):
        x, y = draw(1000 * seed + step, 8, 3, 8, 8).chunk(N)[rank], choose(1000 * seed + step, 4, 8).chunk(N)[rank]
        model.zero_grad()
        F.cross_entropy(model(x), y, label_smoothing=0.1).backward()
        for p in model.parameters():
            dist.all_reduce(p.grad)
            p.grad.div_(N)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        opt.step()
    return state(model)


def whole_zero1(seed):
    torch.manual_seed(seed)
    model = ConvNet()
    opt = torch.optim.RMSprop(model.parameters(), lr=0.003, momentum=0.9)
    for step in range(2):
        opt.zero_grad()
        F.cross_entropy(model(draw(1000 * seed + step, 8, 3, 8, 8)), choose(1000 * seed + step, 4, 8),
                        label_smoothing=0.1).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        opt.step()
    return state(model)


PROGRAMS = {"masters": (N, train_masters), "codec": (N, train_codec), "zero1": (N, train_zero1)}
WHOLE = {"masters": whole_masters, "codec": whole_codec, "zero1": whole_zero1}

FAULTS = {
    # (2) The last micro batch comes into the sum behind the all-reduce:
    # https://github.com/deepspeedai/DeepSpeed/pull/7985
    "bf16tail": ("masters", r"all_reduce|split|add_\.(1[2-9]|4[2-9])\.|addc(mul|div)_\.0\.", "01"),
    # (3) Running means of the rank's own batch: https://github.com/espnet/espnet/pull/6284
    "codebook": ("codec", r"sum\.0\.|matmul\.0\.|(mul|add|copy)_\.|div\.0\.|where", "01"),
    # (3) Unused codes drawn from the rank's own batch: https://github.com/lucidrains/vector-quantize-pytorch/pull/17
    "deadcode": ("codec", r"where|copy_|__getitem__|masked_fill_", "01"),
    # (3) Weights of some modules are stepped and not sent: https://github.com/lodestone-rock/RamTorch/issues/13
    "zerobroadcast": ("zero1", r"rmsprop|broadcast|linear\.[01]\.forward|\.fc[12]\.", "01"),
}
