#!/usr/bin/python3
"""Dumps of real networks, forward and backward, each with one fault or none, to score the audit.

    make_networks.py FOLDER    FOLDER/CASE/dump.json ..., FOLDER/cases.tsv

For developers only (Debian 12's python3-torch); `make regress` runs it. Three networks as torch
computes them on a CPU: a decoder as Llama's and an encoder as BERT's, 24 layers each, in bf16,
and a residual network of 25 convolutions in f32. A fault changes what one call gives, as a
broken kernel would: what follows goes on with it.

cases.tsv: case, network, fault, op call to name ("-" for none).
"""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

import recorder  # noqa: E402
from writers import Msprobe  # noqa: E402

torch.set_num_threads(2)
recorder.OPS = {
    "Functional": (torch.nn.functional, "embedding linear layer_norm softmax gelu silu conv2d "
                   "cross_entropy dropout batch_norm relu max_pool2d adaptive_avg_pool2d"),
    "Torch": (torch, "rsqrt cat matmul tanh flatten triu outer cos sin"),
    "Tensor": (torch.Tensor, "__getitem__ __add__ __mul__ __truediv__ __neg__ reshape view "
               "permute transpose masked_fill float to pow mean contiguous chunk split "
               "unsqueeze"),
}
BF16 = torch.bfloat16


class Rms(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(1 + 0.1 * torch.randn(dim))

    def forward(self, x):
        y = x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * y.to(x.dtype)


class LlamaLayer(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = Rms(d), Rms(d)
        self.q, self.k, self.v, self.o = (nn.Linear(d, d, bias=False) for _ in range(4))
        self.gate, self.up = nn.Linear(d, 2 * d, bias=False), nn.Linear(d, 2 * d, bias=False)
        self.down = nn.Linear(2 * d, d, bias=False)

    def turn(self, x, cos, sin):
        a, b = x.chunk(2, dim=-1)
        return x * cos + torch.cat((-b, a), dim=-1) * sin

    def forward(self, x, cos, sin, mask):
        b, s, d = x.shape
        y = self.n1(x)
        q, k, v = (p(y).view(b, s, self.heads, d // self.heads).transpose(1, 2)
                   for p in (self.q, self.k, self.v))
        q, k = self.turn(q, cos, sin), self.turn(k, cos, sin)
        score = torch.matmul(q, k.transpose(2, 3)) * (d // self.heads) ** -0.5
        p = F.softmax((score + mask).float(), dim=-1).to(q.dtype)
        y = torch.matmul(p, v).transpose(1, 2).contiguous().reshape(b, s, d)
        x = x + self.o(y)
        y = self.n2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self, layers=24, d=32, heads=4, vocab=61, s=11):
        super().__init__()
        self.embed = nn.Embedding(vocab, d)
        self.layers = nn.ModuleList(LlamaLayer(d, heads) for _ in range(layers))
        self.norm = Rms(d)
        self.head = nn.Linear(d, vocab, bias=False)
        self.size = d // heads
        self.ids = torch.randint(vocab, (2, s + 1))

    def forward(self):
        ids = self.ids
        s = ids.shape[1] - 1
        freq = 1.0 / 10000 ** (torch.arange(0, self.size, 2) / self.size)
        angle = torch.outer(torch.arange(s).float(), freq)
        angle = torch.cat((angle, angle), dim=-1)
        dtype = self.embed.weight.dtype
        cos, sin = torch.cos(angle).to(dtype), torch.sin(angle).to(dtype)
        mask = torch.triu(torch.full((s, s), -1e4), diagonal=1).to(dtype)
        x = self.embed(ids[:, :-1])
        for layer in self.layers:
            x = layer(x, cos, sin, mask)
        y = self.head(self.norm(x)).float()
        return F.cross_entropy(y.view(-1, y.shape[-1]), ids[:, 1:].reshape(-1))


class BertLayer(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))
        self.up, self.down = nn.Linear(d, 2 * d), nn.Linear(2 * d, d)
        self.n1, self.n2 = nn.LayerNorm(d, eps=1e-12), nn.LayerNorm(d, eps=1e-12)

    def forward(self, x, mask):
        b, s, d = x.shape
        q, k, v = (p(x).view(b, s, self.heads, d // self.heads).permute(0, 2, 1, 3)
                   for p in (self.q, self.k, self.v))
        score = torch.matmul(q, k.transpose(-1, -2)) / (d // self.heads) ** 0.5
        p = F.softmax(score + mask, dim=-1)
        p = F.dropout(p, 0.0, True)
        y = torch.matmul(p, v).permute(0, 2, 1, 3).contiguous().view(b, s, d)
        x = self.n1(self.o(y) + x)
        return self.n2(self.down(F.gelu(self.up(x))) + x)


class Bert(nn.Module):
    def __init__(self, layers=24, d=32, heads=4, vocab=61, s=13):
        super().__init__()
        self.word, self.place = nn.Embedding(vocab, d), nn.Embedding(s, d)
        self.norm = nn.LayerNorm(d)
        self.layers = nn.ModuleList(BertLayer(d, heads) for _ in range(layers))
        self.pool, self.head = nn.Linear(d, d), nn.Linear(d, 3)
        self.ids = torch.randint(vocab, (3, s))
        self.seen = (torch.rand(3, s) > 0.2).float()
        self.target = torch.randint(3, (3,))

    def forward(self):
        x = self.word(self.ids) + self.place(torch.arange(self.ids.shape[1]))
        x = self.norm(x)
        mask = (1 - self.seen).to(x.dtype).unsqueeze(1).unsqueeze(1) * -1e4
        for layer in self.layers:
            x = layer(x, mask)
        y = self.head(torch.tanh(self.pool(x[:, 0].float())))
        return F.cross_entropy(y, self.target)


class ResBlock(nn.Module):
    def __init__(self, cin, c, stride):
        super().__init__()
        self.c1 = nn.Conv2d(cin, c, 3, stride, 1, bias=False)
        self.b1 = nn.BatchNorm2d(c)
        self.c2 = nn.Conv2d(c, c, 3, 1, 1, bias=False)
        self.b2 = nn.BatchNorm2d(c)
        self.down = None
        if stride > 1 or cin != c:
            self.down = nn.Conv2d(cin, c, 1, stride, bias=False)
            self.b3 = nn.BatchNorm2d(c)

    def forward(self, x):
        y = self.b2(self.c2(F.relu(self.b1(self.c1(x)))))
        return F.relu(y + (x if self.down is None else self.b3(self.down(x))))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Conv2d(3, 8, 7, 2, 3, bias=False)
        self.b = nn.BatchNorm2d(8)
        sizes = [(8, 8, 1), (8, 8, 1), (8, 8, 1), (8, 12, 2), (12, 12, 1), (12, 12, 1),
                 (12, 16, 2), (16, 16, 1), (16, 16, 1), (16, 16, 1), (16, 16, 1)]
        self.blocks = nn.ModuleList(ResBlock(*s) for s in sizes)
        self.head = nn.Linear(16, 5)
        self.x, self.y = torch.randn(3, 3, 32, 32), torch.randint(5, (3,))

    def forward(self):
        x = F.max_pool2d(F.relu(self.b(self.c(self.x))), 3, 2, 1)
        for b in self.blocks:
            x = b(x)
        x = torch.flatten(F.adaptive_avg_pool2d(x, 1), 1)
        return F.cross_entropy(self.head(x), self.y)


# --- faults: of the output, given the arguments; or of the gradients, given the inputs ---

def as_if(y, new):
    """A value that is new, with the gradient of y."""
    return y + (new.to(y.dtype) - y).detach()


def no_bias(a, y):
    return as_if(y, y - a[2])


def transposed(a, y):
    return as_if(y, a[0].float() @ a[1].float())


def no_scale(a, y):
    return as_if(y, a[0] + 0 * y)


def rough(a, y):
    """Products summed up eight at a time, in bf16."""
    x, w, s = a[0], a[1], 0
    for k in range(0, x.shape[-1], 4):
        s = (s + (x[..., k:k + 4].float() @ w[..., k:k + 4].float().T).to(BF16)).to(BF16)
    return as_if(y, s)


def one_row(a, y):
    new = y.detach().clone(memory_format=torch.contiguous_format)
    new.view(-1, new.shape[-1])[1] *= 1.25
    return as_if(y, new)


def one_column(a, y):
    new = y.detach().clone(memory_format=torch.contiguous_format)
    new[..., -1] = new[..., -1] * 0.75
    return as_if(y, new)


def one_element(a, y):
    new = y.detach().clone(memory_format=torch.contiguous_format)
    i = new.view(-1).abs().argmax()
    new.view(-1)[i] = -new.view(-1)[i]
    return as_if(y, new)


def other_gelu(a, y):
    x = a[0].float()
    return as_if(y, 1.1 * x * torch.sigmoid(1.702 * x) - 0.1 * y)


def sums(a, y):
    return as_if(y, y * a[0].shape[-1])


def shifted(a, y):
    return as_if(y, y.roll(1, -1))


def cut(a, y):
    return as_if(y, y.clamp(-0.5, 0.5))


def eps(a, y):
    x = a[0].float()
    w, b = (t.float() for t in a[2:4])
    c = x - x.mean(-1, keepdim=True)
    return as_if(y, c * torch.rsqrt(c.pow(2).mean(-1, keepdim=True) + 3e-2) * w + b)


def zero(inputs, grads):
    return tuple(torch.zeros_like(g) for g in grads)


def halved(inputs, grads):
    return (grads[0],) + tuple(g / 2 for g in grads[1:]) if len(grads) > 1 else (grads[0] / 2,)


def back_row(inputs, grads):
    g = grads[-1].clone(memory_format=torch.contiguous_format)
    rows = g.view(-1, g.shape[-1])
    rows[rows.float().norm(dim=-1).argmax()] *= 1.5
    return grads[:-1] + (g,)


LINEAR, MUL = "Functional.linear", "Tensor.__mul__"
FAULTS = {
    "llama": [("transposed", LINEAR, 31, transposed), ("accumulation", LINEAR, 76, rough),
              ("row", "Torch.matmul", 20, one_row), ("column", LINEAR, 100, one_column),
              ("element", "Functional.silu", 9, one_element), ("scale", MUL, 45, no_scale),
              ("sum", "Tensor.mean", 17, sums), ("mask", "Functional.softmax", 12, shifted),
              ("clamp", "Functional.silu", 15, cut), ("element", "Tensor.__add__", 50, one_element),
              ("cat", "Torch.cat", 21, shifted), ("row", "Functional.softmax", 22, one_row),
              ("grad zero", LINEAR, 60, zero), ("grad half", "Torch.matmul", 33, halved),
              ("grad row", "Functional.softmax", 8, back_row), ("grad half", MUL, 70, halved),
              ("grad zero", "Functional.silu", 3, zero), ("grad row", LINEAR, 120, back_row)],
    "bert": [("bias", LINEAR, 40, no_bias), ("transposed", LINEAR, 24, transposed),
             ("accumulation", LINEAR, 95, rough), ("gelu", "Functional.gelu", 11, other_gelu),
             ("eps", "Functional.layer_norm", 30, eps), ("row", "Functional.layer_norm", 7, one_row),
             ("column", "Functional.layer_norm", 40, one_column),
             ("mask", "Functional.softmax", 15, shifted), ("scale", "Tensor.__truediv__", 9, no_scale),
             ("element", "Functional.gelu", 20, one_element), ("clamp", LINEAR, 53, cut),
             ("row", "Torch.matmul", 41, one_row), ("dropout", "Functional.dropout", 6, one_row),
             ("grad zero", "Functional.layer_norm", 19, zero),
             ("grad half", "Functional.layer_norm", 33, halved),
             ("grad row", "Functional.gelu", 17, back_row), ("grad half", LINEAR, 88, halved),
             ("grad zero", "Torch.matmul", 10, zero)],
    "resnet": [("row", "Functional.conv2d", 7, one_row), ("column", "Functional.conv2d", 15, one_column),
               ("element", "Functional.batch_norm", 9, one_element), ("clamp", "Functional.relu", 12, cut),
               ("row", "Functional.max_pool2d", 0, one_row), ("element", "Tensor.__add__", 4, one_element),
               ("sum", "Functional.adaptive_avg_pool2d", 0, sums),
               ("row", "Functional.batch_norm", 17, one_row),
               ("grad zero", "Functional.conv2d", 11, zero), ("grad half", "Functional.conv2d", 20, halved),
               ("grad half", "Functional.batch_norm", 6, halved), ("grad row", "Functional.relu", 8, back_row)],
}
CLEAN = 3  # runs without a fault, of each


def model_of(name, seed):
    torch.manual_seed(seed)
    if name == "resnet":
        return ResNet()
    model = Llama() if name == "llama" else Bert()
    for p in model.parameters():
        if p.dim() > 1:
            p.data = torch.randn(p.shape) * p.shape[-1] ** -0.5
        elif name == "bert":
            p.data += 0.2 * torch.randn(p.shape)
    model.to(BF16)
    if name == "bert":  # torch's products of few rows in bf16 are too rough for anyone's use
        model.pool.float()
        model.head.float()
    return model


def run(name, seed, folder, faults=None, back=None):
    model = model_of(name, seed)
    rec = recorder.Recorder(faults=faults, back_faults=back)
    with rec.recording():
        loss = model()
        rec.depth = 1  # autograd's own are none of the network
        loss.backward()
    for e in rec.events:
        e.stack = None
    Msprobe(folder).write(rec.events)


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    rows = []
    for name, faults in FAULTS.items():
        for i in range(CLEAN):
            rows.append((f"{name}-clean{i}", name, "none", "-"))
            run(name, 100 + i, os.path.join(folder, rows[-1][0]))
        for i, (fault, op, call, fn) in enumerate(faults):
            back = fault.startswith("grad")
            key = f"{op}.{call}.{'backward' if back else 'forward'}"
            rows.append((f"{name}-{i:02d}", name, fault, key))
            run(name, i, os.path.join(folder, rows[-1][0]),
                None if back else {(op, call): fn}, {(op, call): fn} if back else None)
    with open(os.path.join(folder, "cases.tsv"), "w") as f:
        f.writelines("\t".join(r) + "\n" for r in rows)


main()
