"""Networks that are recorded, two training steps each; and what can be wrong beneath one op call.

A network is a function of nothing that gives a function: one training step."""
import os
import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils.checkpoint import checkpoint

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python"))
import accrecord  # noqa: E402


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        a = (q @ k.transpose(-2, -1)) / (d // self.heads) ** 0.5
        mask = torch.ones(t, t, dtype=torch.bool).triu(1)
        a = F.softmax(a.masked_fill(mask, float("-inf")), dim=-1)
        x = x + self.out((a @ v).transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class Transformer(nn.Module):
    def __init__(self, d, heads, layers, length, words, recompute):
        super().__init__()
        self.recompute = recompute
        self.emb, self.pos = nn.Embedding(words, d), nn.Parameter(torch.randn(length, d) * 0.1)
        self.layers = nn.ModuleList(Block(d, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, words, bias=False)

    def forward(self, ids):
        x = self.emb(ids) + self.pos[:ids.shape[1]]
        for layer in self.layers:
            x = checkpoint(layer, x) if self.recompute else layer(x)
        return self.head(self.norm(x))


def transformer(recompute=False, d=16, heads=2, layers=2, batch=2, length=6, words=23):
    net = Transformer(d, heads, layers, length, words, recompute)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)

    def step():
        ids = torch.randint(0, words, (batch, length + 1))
        loss = F.cross_entropy(net(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        opt.step()
        return loss
    return step


def recomputed():
    return transformer(recompute=True)


class Residual(nn.Module):
    def __init__(self, a, b, stride):
        super().__init__()
        self.c1, self.n1 = nn.Conv2d(a, b, 3, stride, 1, bias=False), nn.BatchNorm2d(b)
        self.c2, self.n2 = nn.Conv2d(b, b, 3, 1, 1, bias=False), nn.BatchNorm2d(b)
        self.short = nn.Sequential(nn.Conv2d(a, b, 1, stride, bias=False), nn.BatchNorm2d(b)) \
            if stride > 1 or a != b else nn.Identity()

    def forward(self, x):
        y = F.relu(self.n1(self.c1(x)), inplace=True)
        y = self.n2(self.c2(y))
        y += self.short(x)
        return F.relu(y, inplace=True)


def resnet(widths=(4, 8), blocks=1, batch=2, size=12):
    layers, a = [nn.Conv2d(3, widths[0], 3, 2, 1), nn.BatchNorm2d(widths[0]), nn.ReLU(),
                 nn.MaxPool2d(3, 2, 1)], widths[0]
    for i, b in enumerate(widths):
        for k in range(blocks):
            layers.append(Residual(a, b, 2 if i > 0 and k == 0 else 1))
            a = b
    net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(a, 10))
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)

    def step():
        x, y = torch.randn(batch, 3, size, size), torch.randint(0, 10, (batch,))
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss
    return step


def lstm():
    emb, net, head = nn.Embedding(11, 6), nn.LSTM(6, 7, 2, batch_first=True), nn.Linear(7, 11)
    params = [p for m in (emb, net, head) for p in m.parameters()]
    opt = torch.optim.Adam(params, lr=1e-2)

    def step():
        ids = torch.randint(0, 11, (3, 6))
        y, _ = net(emb(ids[:, :-1]))
        loss = F.nll_loss(F.log_softmax(head(y), -1).flatten(0, 1), ids[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss
    return step


class MoE(nn.Module):
    def __init__(self, d=8, experts=3):
        super().__init__()
        self.gate = nn.Linear(d, experts)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(d, 16), nn.SiLU(), nn.Linear(16, d))
                                     for _ in range(experts))

    def forward(self, x):
        weight, which = torch.topk(F.softmax(self.gate(x), dim=-1), 2, dim=-1)
        weight = weight / weight.sum(-1, keepdim=True)
        y = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            row, slot = torch.where(which == i)
            y.index_add_(0, row, expert(x[row]) * weight[row, slot, None])
        return y


def moe():
    net = nn.ModuleDict({"a": nn.Linear(5, 8), "moe": MoE(), "b": nn.Linear(8, 1)})
    opt = torch.optim.AdamW(net.parameters(), lr=1e-2)

    def step():
        x, y = torch.randn(12, 5), torch.randn(12, 1)
        loss = F.mse_loss(net["b"](net["moe"](torch.tanh(net["a"](x)))), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss
    return step


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.d1, self.d2 = nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 8, 3, padding=1)
        self.up = nn.ConvTranspose2d(8, 4, 2, 2)
        self.norm, self.out = nn.GroupNorm(2, 8), nn.Conv2d(8, 1, 1)

    def forward(self, x):
        a = F.leaky_relu(self.d1(x), 0.1)
        b = F.silu(self.d2(F.max_pool2d(a, 2)))
        y = torch.cat([a, self.up(b)], 1)
        return self.out(self.norm(y)) + F.interpolate(
            F.avg_pool2d(x, 2), scale_factor=2, mode="bilinear", align_corners=False)


def unet():
    net = UNet()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)

    def step():
        x, y = torch.randn(2, 1, 8, 8), torch.randint(0, 2, (2, 1, 8, 8)).float()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            z = net(x)
        loss = F.binary_cross_entropy_with_logits(z.float(), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss
    return step


def recommender():
    bag, user = nn.EmbeddingBag(30, 6, mode="sum"), nn.Embedding(9, 6)
    mlp = nn.Sequential(nn.Linear(15, 8), nn.ReLU(), nn.Dropout(0.0), nn.Linear(8, 1))
    opt = torch.optim.Adagrad([p for m in (bag, user, mlp) for p in m.parameters()], lr=0.1)

    def step():
        a = bag(torch.randint(0, 30, (4, 5)))
        b = user(torch.randint(0, 9, (4,)))
        x = torch.cat([a, b, (a * b).sum(1, keepdim=True), torch.rand(4, 2)], dim=1)
        loss = F.binary_cross_entropy(torch.sigmoid(mlp(x)).squeeze(1), torch.rand(4).round())
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss
    return step


def gan():
    g = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.LeakyReLU(0.2), nn.Linear(8, 6), nn.Tanh())
    d = nn.Sequential(nn.Linear(6, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
    og = torch.optim.Adam(g.parameters(), lr=2e-3, betas=(0.5, 0.999))
    od = torch.optim.Adam(d.parameters(), lr=2e-3, betas=(0.5, 0.999))

    def step():
        real, z = torch.randn(5, 6), torch.randn(5, 4)
        fake = g(z)
        loss = F.softplus(-d(real)).mean() + F.softplus(d(fake.detach())).mean()
        od.zero_grad()
        loss.backward()
        od.step()
        og.zero_grad()
        loss = F.softplus(-d(fake)).mean()
        loss.backward()
        og.step()
        return loss
    return step


def ddp():
    rank = int(os.environ["RANK"])
    torch.distributed.init_process_group("gloo", rank=rank, world_size=2)
    net = nn.parallel.DistributedDataParallel(
        nn.Sequential(nn.Linear(5, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 3)))
    opt = torch.optim.SGD(net.parameters(), lr=0.1)

    def step():
        x, y = torch.randn(2, 4, 5)[rank], torch.randint(0, 3, (2, 4))[rank]
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        mean = loss.detach().clone()
        torch.distributed.all_reduce(mean)
        opt.step()
        return mean
    return step


NETS = {f.__name__: f for f in (transformer, recomputed, resnet, lstm, moe, unet, recommender, gan,
                                ddp)}


class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        g = g.clone()
        g.view(-1)[: max(1, g.numel() // 4)] *= 1.5
        return g


class Fault(TorchFunctionMode):
    """Beneath the recorder, for it is entered first: one op call is wrong."""

    def __init__(self, key):
        super().__init__()
        self.op, n, self.way = key.rsplit(".", 2)
        self.n, self.seen = int(n), 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if accrecord.name_of(func) != self.op:
            return func(*args, **kwargs)
        self.seen += 1
        if self.seen != self.n + 1:
            return func(*args, **kwargs)
        if self.way == "backward":
            i = next(i for i, a in enumerate(args) if isinstance(a, torch.Tensor) and a.requires_grad)
            args = (*args[:i], Wrong.apply(args[i]), *args[i + 1:])
            return func(*args, **kwargs)
        y = func(*args, **kwargs)
        factor = torch.ones_like(y)
        factor.view(-1)[: max(1, y.numel() // 4)] = 1.5
        return y * factor


def run(name, folder, fault=None, steps=2, **options):
    accrecord.seed_all(7)
    torch.set_num_threads(1)
    step = NETS[name]()
    if fault:
        Fault(fault).__enter__()
    accrecord.start_record(output_dir=folder, **options)
    for _ in range(int(steps)):
        step()
    accrecord.record_switch(False)


if __name__ == "__main__":
    run(*sys.argv[1:])
