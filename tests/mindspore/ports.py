#!/usr/bin/env python3
"""Ports of torch networks to MindSpore, right ones and ones with a default that is not torch's.

    ports.py torch FOLDER [PORT...]        FOLDER/PORT/bench and net.npz, by accrecord
    ports.py mindspore FOLDER [PORT...]    FOLDER/PORT/FAULT/device, by MindSpore's Dump
    ports.py score FOLDER [PORT...]        what accdiff says of them

Each of the first two needs its own framework, MindSpore its numpy 1.26: two virtual environments, one after the other. The
path of FOLDER has no dot: MindSpore refuses one. A port is a class of either framework with the same names of weights; its
faults are words that the constructor of MindSpore's takes, with the kernels that are right to name, as MindSpore made them
(opt-: any of the optimizer's), and the words that name the cause, where there is one to name. Ports of `held` are not looked at while rules are made."""
import json
import os
import re
import subprocess
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import ports_eighth  # noqa: E402
import ports_eleventh  # noqa: E402
import ports_fourth  # noqa: E402
import ports_judge  # noqa: E402
import ports_ninth  # noqa: E402
import ports_seventh  # noqa: E402
import ports_sixth  # noqa: E402
import ports_tenth  # noqa: E402
import ports_third  # noqa: E402
import ports_thirteenth  # noqa: E402
import ports_twelfth  # noqa: E402

MORE = (ports_judge, ports_third, ports_fourth, ports_sixth, ports_seventh, ports_eighth, ports_ninth, ports_tenth, ports_eleventh, ports_twelfth,
        ports_thirteenth)
UNIT = re.compile(r"[\d,.e+-]+ eps of \w+")  # no argument

# port: (set, what goes in, train, {fault: (kernels, words)})
PORTS = {
    "mlp": ("teach", "x", False, {
        "gelu": ("GeLU", "tanh"), "eps": ("LayerNorm", "eps"), "axis": ("Softmax", "dim"), "bias": ("fc1 Sub", "")}),
    "conv": ("teach", "img", True, {
        "leaky": ("LeakyReLU Mul Maximum", "0.2"), "same": ("Conv2D", "pad"), "momentum": ("BatchNorm", "momentum"),
        "bneps": ("BatchNorm", "eps")}),
    "block": ("teach", "ids", False, {
        "gelu": ("GeLU", "tanh"), "eps": ("LayerNorm", "eps"), "axis": ("Softmax", "dim"), "scale": ("Mul Softmax BatchMatMul", "0.25"),
        "turned": ("o-Dense o.Dense", "transposed")}),
    "gated": ("teach", "ids", False, {
        "swap": ("Mul SiLU Sigmoid", ""), "rms": ("Rsqrt Add ReduceMean Rms", "1e-05"), "silu": ("GeLU SiLU Sigmoid Div Erf", "")}),
    "std": ("teach", "x", False, {"ddof": ("ReduceStd", "unbiased"), "reduction": ("SmoothL1Loss", "reduction")}),
    "adamw": ("teach", "step", True, {
        "eps": ("opt-", "eps"), "decay": ("opt-", "weight_decay"), "l2": ("opt-", "")}),
    "adam": ("teach", "step", True, {"eps": ("Adam", "eps"), "lr": ("Adam", "lr")}),
    "lstm": ("teach", "ids", False, {"gates": ("LSTM", "order")}),
    "tiny": ("fixture", "tiny", False, {
        "gelu": ("GeLU", "tanh"), "eps": ("LayerNorm", "eps"), "axis": ("Softmax", "dim"), "ddof": ("ReduceStd", "unbiased"),
        "scale": ("Mul", "0.25")}),
    "packed": ("fixture", "ids", False, {"input": ("LSTM", "goes in"), "state": ("LSTM", "state"), "sum": ("LSTM", "bias")}),
    "vit": ("held", "img", False, {
        "gelu": ("GeLU", "tanh"), "eps": ("LayerNorm", "eps"), "scale": ("Mul Div Softmax BatchMatMul", ""), "prenorm": ("MatMul BiasAdd", "")}),
    "resnet": ("held", "img", True, {
        "avg": ("AvgPool MaxPool", ""), "momentum": ("BatchNorm", "momentum"), "gn": ("GroupNorm", "eps"), "same": ("Conv2D", "pad")}),
    "decoder": ("held", "ids", False, {
        "elu": ("Elu Mul Maximum", ""), "mask": ("Softmax Select MaskedFill Add", ""), "layer": ("LayerNorm", "eps"), "axis": ("Softmax", "dim"),
        "logsoft": ("LogSoftmax", "dim")}),
    "mixer": ("held", "x", False, {
        "leaky": ("LeakyReLU Mul Maximum", "0.2"), "ddof": ("ReduceStd", "unbiased"), "mean": ("ReduceMean", "dim along"),
        "cos": ("HSigmoid", "")}),
    "momentum": ("held", "step", True, {"lr": ("ApplyMomentum", "lr")}),  # its use_nesterov does nothing on a CPU
}
for more in MORE:
    PORTS.update(more.PORTS)


def data(kind):
    for more in MORE:
        own = getattr(more, "data", lambda kind: None)(kind)
        if own is not None:
            return own
    r = np.random.RandomState(5)
    if kind == "img":
        return [r.randn(4, 3, 8, 8).astype(np.float32), r.randint(0, 7, 4).astype(np.int32)]
    if kind == "ids":
        return [r.randint(0, 20, (3, 6)).astype(np.int32), r.randint(0, 7, 3).astype(np.int32)]
    if kind == "step":
        return [r.randn(6, 10).astype(np.float32), r.randint(0, 7, 6).astype(np.int32)]
    if kind == "tiny":
        return [r.randn(2, 3, 4).astype(np.float32), r.randn(2, 3, 4).astype(np.float32)]
    return [r.randn(5, 6, 12).astype(np.float32), r.randn(5, 6, 12).astype(np.float32)]


# --- torch ---


def torch_nets():
    import torch
    from torch import nn
    import torch.nn.functional as F

    class mlp(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.ln, self.act, self.fc2 = nn.Linear(12, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 12)

        def forward(self, x, t):
            return F.mse_loss(F.softmax(self.fc2(self.act(self.ln(self.fc1(x) * 0.1))), dim=-1), t)

    class tiny(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.ln, self.act, self.fc2 = nn.Linear(4, 6), nn.LayerNorm(6), nn.GELU(), nn.Linear(6, 4)

        def forward(self, x, t):
            x = self.act(self.ln(self.fc1(x) * 0.1))
            x = self.fc2(x / x.std(-1, keepdim=True))
            return F.mse_loss(F.softmax(x * 0.5, dim=-1), t)

    class conv(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.bn1 = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
            self.conv2, self.bn2 = nn.Conv2d(8, 12, 3, stride=2, padding=1), nn.BatchNorm2d(12)
            self.act, self.fc1, self.fc2 = nn.LeakyReLU(), nn.Linear(12 * 16, 16), nn.Linear(16, 7)

        def forward(self, x, t):
            x = F.relu(self.bn1(self.conv1(x)))
            x = self.act(self.bn2(self.conv2(x)))
            return F.cross_entropy(self.fc2(self.act(self.fc1(x.flatten(1)))), t)

    class block(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.ln1, self.ln2 = nn.Embedding(20, 16), nn.LayerNorm(16), nn.LayerNorm(16)
            self.q, self.k, self.v, self.o = (nn.Linear(16, 16) for _ in range(4))
            self.up, self.act, self.down, self.head = nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16), nn.Linear(16, 7)

        def forward(self, ids, t):
            x = self.emb(ids)
            h = self.ln1(x)
            q, k, v = (p(h).view(3, 6, 2, 8).transpose(1, 2) for p in (self.q, self.k, self.v))
            a = torch.softmax(torch.matmul(q, k.transpose(-1, -2)) * 8 ** -0.5, dim=-1)
            x = x + self.o(torch.matmul(a, v).transpose(1, 2).reshape(3, 6, 16))
            x = x + self.down(self.act(self.up(self.ln2(x))))
            return F.cross_entropy(self.head(x.mean(1)), t)

    class gated(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.g = nn.Embedding(20, 16), nn.Parameter(torch.ones(16))
            self.gate, self.up, self.down = (nn.Linear(*s, bias=False) for s in ((16, 24), (16, 24), (24, 7)))

        def forward(self, ids, t):
            x = self.emb(ids) * 0.02
            x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.g
            x = self.down(F.silu(self.gate(x)) * self.up(x))
            return F.cross_entropy(x.mean(1), t)

    class std(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.fc2 = nn.Linear(12, 12), nn.Linear(12, 12)

        def forward(self, x, t):
            x = self.fc1(x)
            x = (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-5)
            return F.smooth_l1_loss(self.fc2(x), t)

    class lstm(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.lstm, self.fc = nn.Embedding(20, 12), nn.LSTM(12, 10, batch_first=True), nn.Linear(10, 7)

        def forward(self, ids, t):
            y, _ = self.lstm(self.emb(ids))
            return F.cross_entropy(self.fc(y[:, -1]), t)

    class packed(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.fc = nn.Embedding(20, 4), nn.Linear(6, 7)
            self.lstm = nn.LSTM(4, 3, num_layers=2, bidirectional=True, batch_first=True)

        def forward(self, ids, t):
            y, _ = self.lstm(self.emb(ids))
            return F.cross_entropy(self.fc(y[:, -1]), t)

    class adamw(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.fc2 = nn.Linear(10, 16), nn.Linear(16, 7)

        def forward(self, x, t):
            return F.cross_entropy(self.fc2(F.relu(self.fc1(x))), t)

    class adam(adamw):
        pass

    class momentum(adamw):
        pass

    class vit(nn.Module):
        def __init__(self):
            super().__init__()
            self.patch, self.pos = nn.Conv2d(3, 16, 4, stride=4), nn.Parameter(torch.randn(1, 4, 16))
            self.ln1, self.ln2, self.ln3 = (nn.LayerNorm(16, eps=1e-6) for _ in range(3))
            self.qkv, self.proj = nn.Linear(16, 48), nn.Linear(16, 16)
            self.up, self.act, self.down, self.head = nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16), nn.Linear(16, 7)

        def forward(self, x, t):
            x = self.patch(x).flatten(2).transpose(1, 2) + self.pos
            q, k, v = self.qkv(self.ln1(x)).chunk(3, dim=-1)
            a = F.softmax(q @ k.transpose(1, 2) / 4.0, dim=-1)
            x = x + self.proj(a @ v)
            x = x + self.down(self.act(self.up(self.ln2(x))))
            return F.cross_entropy(self.head(self.ln3(x)[:, 0]), t)

    class resnet(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.bn1 = nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
            self.conv2, self.bn2 = nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
            self.conv3, self.gn, self.fc = nn.Conv2d(8, 8, 3, stride=2, padding=1), nn.GroupNorm(2, 8), nn.Linear(32, 7)

        def forward(self, x, t):
            x = F.relu(self.bn1(self.conv1(x)))
            x = F.relu(x + self.bn2(self.conv2(x)))
            x = F.relu(self.gn(self.conv3(x) * 0.02))
            x = F.avg_pool2d(x, 2, 2)
            return F.cross_entropy(self.fc(x.flatten(1)), t)

    class decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.ln = nn.Embedding(20, 16), nn.LayerNorm(16)
            self.q, self.k, self.v = (nn.Linear(16, 16) for _ in range(3))
            self.up, self.act, self.down = nn.Linear(16, 32), nn.ELU(), nn.Linear(32, 7)

        def forward(self, ids, t):
            x = self.emb(ids) * 0.05
            h = self.ln(x)
            s = torch.bmm(self.q(h), self.k(h).transpose(1, 2)) * 0.25
            s = s.masked_fill(torch.triu(torch.ones(6, 6, dtype=torch.bool), 1), -1e9)
            x = x + torch.bmm(F.softmax(s, dim=-1), self.v(h))
            x = self.down(self.act(self.up(x)))
            return F.nll_loss(F.log_softmax(x.sum(1), dim=-1), t)

    class mixer(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.act, self.fc2, self.fc3 = nn.Linear(6, 9), nn.LeakyReLU(), nn.Linear(9, 6), nn.Linear(12, 12)

        def forward(self, x, t):
            x = x + self.fc2(self.act(self.fc1(x.transpose(1, 2)))).transpose(1, 2)
            x = x / x.std(-1, keepdim=True)
            x = torch.tanh(self.fc3(x)) * torch.sigmoid(x)
            return ((x - t) ** 2).mean((1, 2)).sum()

    return locals()


def record_torch(folder, names):
    import torch
    sys.path.insert(0, os.path.join(HERE, "..", "..", "python"))
    import accrecord
    torch.manual_seed(3)
    nets = torch_nets()
    for more in MORE:
        nets.update(more.torch_nets())
    for name in names:
        _, kind, train, _ = PORTS[name]
        to = os.path.join(folder, name)
        os.makedirs(to, exist_ok=True)
        net = nets[name]()
        for p in net.parameters():
            if p.dim() == 1:
                p.data += 0.1 * torch.randn(p.shape)
        net.train(train)
        np.savez(os.path.join(to, "net.npz"), **{k: v.numpy() for k, v in net.state_dict().items()})
        x, t = data(kind)
        x, t = torch.from_numpy(x), torch.from_numpy(t)
        x = x if x.is_floating_point() else x.long()
        t = t if t.is_floating_point() else t.long()
        opt = {"adamw": lambda p: torch.optim.AdamW(p, lr=1e-2, weight_decay=0.1), "adam": lambda p: torch.optim.Adam(p, lr=1e-2),
               "momentum": lambda p: torch.optim.SGD(p, lr=1e-2, momentum=0.9)}.get(name, lambda p: next((m.torch_optimizer(name, p) for m in MORE if name in m.PORTS), None))(net.parameters())
        accrecord.start_record(output_dir=os.path.join(to, "bench"), record_level=2)
        if opt is None:
            with torch.no_grad():
                print(name, net(x, t).item())
        else:
            loss = net(x, t)
            loss.backward()
            for m in MORE:
                getattr(m, "torch_clip", lambda *a: None)(name, list(net.parameters()))
            opt.step()
            print(name, loss.item())
        accrecord.record_switch(False)


# --- MindSpore ---


def mindspore_nets():
    import mindspore as ms
    from mindspore import nn, ops

    class Mlp(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.fc1, self.fc2 = nn.Dense(12, 16, has_bias=True), nn.Dense(16, 12)
            self.ln = nn.LayerNorm((16,)) if f == "eps" else nn.LayerNorm((16,), epsilon=1e-5)
            self.act = nn.GELU() if f == "gelu" else nn.GELU(approximate=False)
            self.axis, self.mse, self.nobias = 1 if f == "axis" else -1, nn.MSELoss(), f == "bias"

        def construct(self, x, t):
            x = self.fc1(x)
            if self.nobias:
                x = x - self.fc1.bias
            return self.mse(ops.softmax(self.fc2(self.act(self.ln(x * 0.1))), axis=self.axis), t)

    class Tiny(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.fc1, self.fc2, self.mse = nn.Dense(4, 6), nn.Dense(6, 4), nn.MSELoss()
            self.ln = nn.LayerNorm((6,)) if f == "eps" else nn.LayerNorm((6,), epsilon=1e-5)
            self.act = nn.GELU() if f == "gelu" else nn.GELU(approximate=False)
            self.axis, self.ddof, self.scale = 1 if f == "axis" else -1, 0 if f == "ddof" else 1, 0.25 if f == "scale" else 0.5

        def construct(self, x, t):
            x = self.act(self.ln(self.fc1(x) * 0.1))
            x = self.fc2(x / ops.std(x, -1, self.ddof, True))
            return self.mse(ops.softmax(x * self.scale, axis=self.axis), t)

    class Conv(nn.Cell):
        def __init__(self, f):
            super().__init__()
            bn = {} if f == "momentum" else {"momentum": 0.9}
            if f == "momentum":
                bn = {"momentum": 0.1}
            if f == "bneps":
                bn["eps"] = 1e-3
            pad = {} if f == "same" else {"pad_mode": "pad", "padding": 1}
            self.conv1 = nn.Conv2d(3, 8, 3, pad_mode="pad", padding=1, has_bias=True)
            self.conv2 = nn.Conv2d(8, 12, 3, stride=2, has_bias=True, **pad)
            self.bn1, self.bn2 = nn.BatchNorm2d(8, **bn), nn.BatchNorm2d(12, **bn)
            self.act = nn.LeakyReLU() if f == "leaky" else nn.LeakyReLU(0.01)
            self.fc1, self.fc2, self.relu, self.loss = nn.Dense(12 * 16, 16), nn.Dense(16, 7), nn.ReLU(), nn.CrossEntropyLoss()

        def construct(self, x, t):
            x = self.relu(self.bn1(self.conv1(x)))
            x = self.act(self.bn2(self.conv2(x)))
            return self.loss(self.fc2(self.act(self.fc1(x.reshape(4, -1)))), t)

    class Block(nn.Cell):
        def __init__(self, f):
            super().__init__()
            eps = {} if f == "eps" else {"epsilon": 1e-5}
            self.emb, self.ln1, self.ln2 = nn.Embedding(20, 16), nn.LayerNorm((16,), **eps), nn.LayerNorm((16,), **eps)
            self.q, self.k, self.v, self.o = (nn.Dense(16, 16) for _ in range(4))
            self.up, self.down, self.head = nn.Dense(16, 32), nn.Dense(32, 16), nn.Dense(16, 7)
            self.act = nn.GELU() if f == "gelu" else nn.GELU(approximate=False)
            self.axis, self.scale, self.loss = 1 if f == "axis" else -1, 0.25 if f == "scale" else 8 ** -0.5, nn.CrossEntropyLoss()

        def construct(self, ids, t):
            x = self.emb(ids)
            h = self.ln1(x)
            q = self.q(h).reshape(3, 6, 2, 8).transpose(0, 2, 1, 3)
            k = self.k(h).reshape(3, 6, 2, 8).transpose(0, 2, 3, 1)
            v = self.v(h).reshape(3, 6, 2, 8).transpose(0, 2, 1, 3)
            a = ops.softmax(ops.matmul(q, k) * self.scale, axis=self.axis)
            x = x + self.o(ops.matmul(a, v).transpose(0, 2, 1, 3).reshape(3, 6, 16))
            x = x + self.down(self.act(self.up(self.ln2(x))))
            return self.loss(self.head(x.mean(1)), t)

    class Gated(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.emb, self.g = nn.Embedding(20, 16), ms.Parameter(ops.ones(16, ms.float32), name="g")
            self.gate, self.up, self.down = (nn.Dense(*s, has_bias=False) for s in ((16, 24), (16, 24), (24, 7)))
            self.eps, self.swap, self.act, self.loss = 1e-5 if f == "rms" else 1e-6, f == "swap", ops.gelu if f == "silu" else ops.silu, nn.CrossEntropyLoss()

        def construct(self, ids, t):
            x = self.emb(ids) * 0.02
            x = x * ops.rsqrt(ops.pow(x, 2).mean(-1, True) + self.eps) * self.g
            if self.swap:
                x = self.down(self.gate(x) * self.act(self.up(x)))
            else:
                x = self.down(self.act(self.gate(x)) * self.up(x))
            return self.loss(x.mean(1), t)

    class Std(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.fc1, self.fc2, self.ddof = nn.Dense(12, 12), nn.Dense(12, 12), 0 if f == "ddof" else 1
            self.loss = nn.SmoothL1Loss() if f == "reduction" else nn.SmoothL1Loss(reduction="mean")

        def construct(self, x, t):
            x = self.fc1(x)
            x = (x - x.mean(-1, True)) / (ops.std(x, -1, self.ddof, True) + 1e-5)
            return self.loss(self.fc2(x), t)

    class Lstm(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.emb, self.lstm, self.fc, self.loss = nn.Embedding(20, 12), nn.LSTM(12, 10, batch_first=True), nn.Dense(10, 7), nn.CrossEntropyLoss()

        def construct(self, ids, t):
            y, _ = self.lstm(self.emb(ids))
            return self.loss(self.fc(y[:, -1]), t)

    class Packed(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.emb, self.fc, self.loss = nn.Embedding(20, 4), nn.Dense(6, 7), nn.CrossEntropyLoss()
            self.lstm = nn.LSTM(4, 3, num_layers=2, bidirectional=True, batch_first=True)

        def construct(self, ids, t):
            y, _ = self.lstm(self.emb(ids))
            return self.loss(self.fc(y[:, -1]), t)

    class Adamw(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.fc1, self.fc2, self.relu, self.loss = nn.Dense(10, 16), nn.Dense(16, 7), nn.ReLU(), nn.CrossEntropyLoss()

        def construct(self, x, t):
            return self.loss(self.fc2(self.relu(self.fc1(x))), t)

    class Vit(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.patch, self.pos = nn.Conv2d(3, 16, 4, stride=4, pad_mode="valid", has_bias=True), ms.Parameter(ops.ones((1, 4, 16), ms.float32), name="pos")
            eps = {} if f == "eps" else {"epsilon": 1e-6}
            self.ln1, self.ln2, self.ln3 = nn.LayerNorm((16,), epsilon=1e-6), nn.LayerNorm((16,), epsilon=1e-6), nn.LayerNorm((16,), epsilon=1e-6)
            if f == "eps":
                self.ln1 = nn.LayerNorm((16,), epsilon=1e-2)
            self.qkv, self.proj = nn.Dense(16, 48), nn.Dense(16, 16)
            self.up, self.down, self.head = nn.Dense(16, 32), nn.Dense(32, 16), nn.Dense(16, 7)
            self.act = nn.GELU() if f == "gelu" else nn.GELU(approximate=False)
            self.scale, self.post, self.loss = 2.0 if f == "scale" else 4.0, f == "prenorm", nn.CrossEntropyLoss()

        def construct(self, x, t):
            x = self.patch(x).reshape(4, 16, 4).transpose(0, 2, 1) + self.pos
            q, k, v = ops.chunk(self.qkv(self.ln1(x)), 3, axis=-1)
            a = ops.softmax(ops.bmm(q, k.transpose(0, 2, 1)) / self.scale, axis=-1)
            x = x + self.proj(ops.bmm(a, v))
            h = x if self.post else self.ln2(x)
            x = x + self.down(self.act(self.up(h)))
            return self.loss(self.head(self.ln3(x)[:, 0]), t)

    class Resnet(nn.Cell):
        def __init__(self, f):
            super().__init__()
            m = 0.1 if f == "momentum" else 0.9
            self.conv1, self.bn1 = nn.Conv2d(3, 8, 3, pad_mode="pad", padding=1), nn.BatchNorm2d(8, momentum=m)
            self.conv2, self.bn2 = nn.Conv2d(8, 8, 3, pad_mode="pad", padding=1), nn.BatchNorm2d(8, momentum=m)
            pad = {} if f == "same" else {"pad_mode": "pad", "padding": 1}
            self.conv3, self.fc = nn.Conv2d(8, 8, 3, stride=2, has_bias=True, **pad), nn.Dense(32, 7)
            self.gn = nn.GroupNorm(2, 8, eps=1e-3 if f == "gn" else 1e-5)
            self.relu, self.avg = nn.ReLU(), nn.AvgPool2d(2, 2) if f != "avg" else nn.MaxPool2d(2, 2)
            self.loss = nn.CrossEntropyLoss()

        def construct(self, x, t):
            x = self.relu(self.bn1(self.conv1(x)))
            x = self.relu(x + self.bn2(self.conv2(x)))
            x = self.relu(self.gn(self.conv3(x) * 0.02))
            x = self.avg(x)
            return self.loss(self.fc(x.reshape(4, -1)), t)

    class Decoder(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.emb, self.ln = nn.Embedding(20, 16), nn.LayerNorm((16,), epsilon=1e-7 if f == "layer" else 1e-5)
            self.q, self.k, self.v = (nn.Dense(16, 16) for _ in range(3))
            self.up, self.act, self.down = nn.Dense(16, 32), nn.ELU(0.5 if f == "elu" else 1.0), nn.Dense(32, 7)
            if f == "elu":
                self.act = nn.LeakyReLU(0.5)
            self.mask = ms.Tensor(np.triu(np.ones((6, 6), bool), 0 if f == "mask" else 1))
            self.axis, self.last, self.nll = 1 if f == "axis" else -1, 0 if f == "logsoft" else -1, nn.NLLLoss()

        def construct(self, ids, t):
            x = self.emb(ids) * 0.05
            h = self.ln(x)
            s = ops.bmm(self.q(h), self.k(h).transpose(0, 2, 1)) * 0.25
            s = ops.masked_fill(s, self.mask, -1e9)
            x = x + ops.bmm(ops.softmax(s, axis=self.axis), self.v(h))
            x = self.down(self.act(self.up(x)))
            return self.nll(ops.log_softmax(x.sum(1), axis=self.last), t)

    class Mixer(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.fc1, self.act, self.fc2, self.fc3 = nn.Dense(6, 9), nn.LeakyReLU(0.2 if f == "leaky" else 0.01), nn.Dense(9, 6), nn.Dense(12, 12)
            self.ddof, self.axes, self.cos = 0 if f == "ddof" else 1, (0, 2) if f == "mean" else (1, 2), f == "cos"

        def construct(self, x, t):
            x = x + self.fc2(self.act(self.fc1(x.transpose(0, 2, 1)))).transpose(0, 2, 1)
            x = x / ops.std(x, -1, self.ddof, True)
            x = ops.tanh(self.fc3(x)) * (ops.sigmoid(x) if not self.cos else ops.hardsigmoid(x))
            return ((x - t) ** 2).mean(self.axes).sum()

    class Adam(Adamw):
        pass

    class Momentum(Adamw):
        pass

    return locals()


NAMES = {"gamma": "weight", "beta": "bias", "moving_mean": "running_mean", "moving_variance": "running_var", "embedding_table": "weight", "a": "weight"}


def loaded(folder, name, fault):
    """The port, with the weights of the torch network."""
    import mindspore as ms
    nets = mindspore_nets()
    more = [m for m in MORE if name in m.PORTS]
    for m in more:
        nets.update(m.mindspore_nets())
    net = nets[name.capitalize()](fault)
    w = dict(np.load(os.path.join(folder, name, "net.npz")))
    for m in more:
        w = getattr(m, "mindspore_weights", lambda n, f, w: w)(name, fault, w)
    for p in net.get_parameters():
        head, _, last = p.name.rpartition(".")
        v = w[(head + "." if head else "") + (NAMES.get(last, last))]
        if fault == "turned" and p.name == "o.weight":
            v = v.T.copy()
        if fault == "gates" and "_l0" in p.name:
            i, g, c, o = np.split(v, 4)
            v = np.concatenate([i, c, g, o])
        if name == "packed" and p.name == {"input": "lstm.weight_ih_l1", "state": "lstm.weight_hh_l0_reverse", "sum": "lstm.bias_hh_l1_reverse"}.get(fault):
            v = v[::-1].copy()
        p.set_data(ms.Tensor(v))
    return net


def record_mindspore(folder, name, fault):
    _, kind, train, _ = PORTS[name]
    to = os.path.join(folder, name, fault)
    os.makedirs(to, exist_ok=True)
    with open(os.path.join(to, "dump.json"), "w") as f:
        json.dump({"common_dump_settings": {"op_debug_mode": 0, "dump_mode": 0, "path": os.path.join(to, "device"), "net_name": "Net",
                                            "iteration": "all", "saved_data": "tensor", "input_output": 0, "kernels": [],
                                            "support_device": list(range(8))},
                   "e2e_dump_settings": {"enable": True, "trans_flag": True}}, f)
    os.environ["MINDSPORE_DUMP_CONFIG"] = os.path.join(to, "dump.json")
    import mindspore as ms
    from mindspore import nn
    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU", jit_config={"jit_level": "O0"})
    net = loaded(folder, name, fault)
    net.set_train(train)
    x, t = data(kind)
    x, t = ms.Tensor(x), ms.Tensor(t)
    if kind != "step":
        print(name, fault, net(x, t))
    else:
        params = net.trainable_params()
        more = [m for m in MORE if name in m.PORTS]
        if more:
            opt = more[0].mindspore_optimizer(name, params, fault)
        elif name == "adamw":
            from mindspore.experimental import optim
            kw = {"lr": 1e-2, "weight_decay": 0.01 if fault == "decay" else 0.1}
            if fault == "eps":
                kw["eps"] = 1e-3
            opt = optim.Adam(params, **kw) if fault == "l2" else optim.AdamW(params, **kw)
        elif name == "adam":
            opt = nn.Adam(params, learning_rate=1e-3 if fault == "lr" else 1e-2, eps=1e-3 if fault == "eps" else 1e-8)
        else:
            opt = nn.Momentum(params, 1e-3 if fault == "lr" else 1e-2, 0.9)
        grad = ms.value_and_grad(net, None, list(opt.parameters))
        clip = more[0].mindspore_clip(name, fault) if more and hasattr(more[0], "mindspore_clip") else None

        class Step(nn.Cell):
            def __init__(self):
                super().__init__()
                self.net, self.opt, self.grad = net, opt, grad

            def construct(self, x, t):
                loss, g = self.grad(x, t)
                if clip is not None:
                    g = clip(g)
                self.opt(g)
                return loss

        print(name, fault, Step()(x, t))


# --- what comes of it ---


def score(folder, names, show, at=lambda kernels, first: any(k == first.split(".")[0] or ("-" in k and k in first) for k in kernels)):
    bin = os.environ.get("BIN", os.path.join(HERE, "..", "..", "bin"))
    env = dict(os.environ, PATH=bin + ":" + os.environ["PATH"])
    n = {"right": [0, 0], "wrong": [0, 0], "place": [0, 0], "cause": [0, 0]}
    for name in names:
        for fault in ["right", *PORTS[name][3]]:
            device = os.path.join(folder, name, fault, "device")
            if not os.path.exists(device):
                continue
            q = subprocess.run(["accdiff", device, os.path.join(folder, name, "bench")], env=env,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            lines = q.stdout.strip().split("\n\n")
            said = next((p for p in lines if not p.startswith("name ") and not p[:1].isdigit()), "")
            # "process 7, step 0: " stands before a name where a recording says so
            where = re.sub(r"^(?:(?:process|rank|step) \d+(?:, )?)+: |^probably ", "", said).split(": ")[0] if q.returncode == 1 else ""
            if fault == "right":
                n["right"][0] += q.returncode != 0
                n["right"][1] += 1
                print("%-9s right    exit %d %s" % (name, q.returncode, "" if q.returncode == 0 else "ACCUSED: " + said[:show]))
                continue
            kernels, words = (t.split() for t in PORTS[name][3][fault])
            words += ["axis"] * ("dim" in words)  # what MindSpore's functions call it
            first = where.split(" ")[0]
            place = q.returncode == 1 and at(kernels, first)
            cause = place and any(re.search(r"(?<![\w.])%s%s" % (re.escape(w), r"\b" if len(w) == 1 else ""), UNIT.sub("", said)) for w in words)
            for k, v in (("wrong", q.returncode == 1), ("place", place), ("cause", cause)):
                n[k][0] += v
                n[k][1] += k != "cause" or len(words) > 0
            print("%-9s %-8s exit %d %s%s %s" % (name, fault, q.returncode, "P" if place else "-",
                                                 " " if not words else "C" if cause else "-", said[:show] or q.stderr[:show]))
    print("right ports accused %d of %d" % tuple(n["right"]))
    print("wrong ports at exit 1: %d of %d, at the place %d, the cause named %d of %d" % (*n["wrong"], n["place"][0], *n["cause"]))


def main():
    what, folder = sys.argv[1], os.path.abspath(sys.argv[2])
    names = [p for p in PORTS if p in sys.argv[3:] or PORTS[p][0] in sys.argv[3:] or len(sys.argv) == 3]
    if what == "torch":
        record_torch(folder, names)
    elif what == "score":
        score(folder, names, int(os.environ.get("SHOW", "200")))
    else:  # one process a dump, since its graphs are counted; all of one that has imported MindSpore
        import mindspore  # noqa: F401
        for name in names:
            for fault in ["right", *PORTS[name][3]]:
                if os.fork() == 0:
                    try:
                        record_mindspore(folder, name, fault)
                    except Exception as e:
                        print("not run:", name, fault, str(e).strip().split("\n")[0])
                    sys.stdout.flush()
                    os._exit(0)
                os.wait()


main() if __name__ == "__main__" else None
