"""A third set of ports for ports.py, `third`: made before the rules that it judges, and scored behind them. The same conventions."""
import numpy as np

PORTS = {
    "convnext": ("third", "img", False, {
        "gelu": ("GeLU", "tanh"), "eps": ("LayerNorm", "eps"), "same": ("Conv2D", "pad"), "layer": ("LayerNorm", "eps")}),
    "twotower": ("third", "x", False, {
        "temp": ("Div", "0.1"), "axis": ("ReduceSum", "dim"),
        "smooth": ("CrossEntropy Div loss-Cross NLLLoss Mul Add", "smoothing")}),
    "kld": ("third", "x", False, {"axis": ("LogSoftmax Softmax", "dim"), "mean": ("Div", "30")}),
    "hinge": ("third", "x", False, {
        "softplus": ("ReLU Softplus", ""), "sum": ("ReduceSum ReduceMean BCEWithLogitsLoss", "reduction"), "ddof": ("ReduceStd", "unbiased")}),
    "upsample": ("third", "img", False, {
        "mse": ("loss-", ""), "align": ("ResizeBilinearV2", "align"), "slope": ("LeakyReLU Mul Maximum", "0.2"),
        "gn": ("GroupNorm", "eps")}),
    "gru": ("third", "ids", False, {"last": ("StridedSlice", ""), "tanh": ("Sigmoid Tanh", "")}),
    "rope": ("third", "ids", False, {
        "half": ("Concat Mul Neg Stack", ""), "mask": ("MaskedFill Select Softmax", ""), "rms": ("Rsqrt Add ReduceMean", "1e-05"),
        "scale": ("Div", "4")}),
    "gates": ("third", "ids", False, {"order": ("Mul", ""), "k": ("TopK", "k"), "act": ("Div Erf", "")}),
    "rmsprop": ("third", "step", True, {"alpha": ("opt-", "alpha"), "eps": ("opt-", "eps")}),
    "sgdm": ("third", "step", True, {"lr": ("opt-", "lr"), "decay": ("opt-", "weight_decay")}),
    "adamax": ("third", "step", True, {"lr": ("opt-", "lr"), "clip": ("opt-", "")}),
}


def torch_nets():
    import torch
    from torch import nn
    import torch.nn.functional as F

    class convnext(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem, self.dw = nn.Conv2d(3, 12, 2, stride=2), nn.Conv2d(12, 12, 3, padding=1, groups=12)
            self.down, self.ln, self.ln2 = nn.Conv2d(12, 16, 3, stride=2, padding=1), nn.LayerNorm(12, eps=1e-6), nn.LayerNorm(16, eps=1e-6)
            self.up, self.out, self.scale, self.head = nn.Linear(12, 24), nn.Linear(24, 12), nn.Parameter(torch.ones(12) * 0.1), nn.Linear(16, 7)

        def forward(self, x, t):
            x = self.stem(x * 0.05)
            h = self.ln(self.dw(x).permute(0, 2, 3, 1))
            h = self.out(F.gelu(self.up(h))) * self.scale
            x = self.down(x + h.permute(0, 3, 1, 2))
            return F.cross_entropy(self.head(self.ln2(x.mean((2, 3)))), t)

    class twotower(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(12, 8), nn.Linear(12, 8)

        def forward(self, x, t):
            a, b = torch.tanh(self.a(x)).mean(1), torch.tanh(self.b(t)).mean(1)
            a, b = a / torch.sqrt((a * a).sum(1, keepdim=True)), b / torch.sqrt((b * b).sum(1, keepdim=True))
            return F.cross_entropy(a @ b.t() / 0.07, torch.arange(5))

    class kld(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.fc2 = nn.Linear(12, 9), nn.Linear(12, 9)

        def forward(self, x, t):
            p, q = F.log_softmax(self.fc1(x) / 2, dim=-1), F.softmax(self.fc2(t) / 2, dim=-1)
            return (q * (torch.log(q) - p)).sum() / 5

    class hinge(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.act, self.fc2 = nn.Linear(12, 10), nn.PReLU(), nn.Linear(10, 12)

        def forward(self, x, t):
            h = self.act(self.fc1(x))
            h = F.softplus(h) / (h.std(2, keepdim=True) + 1.0)
            return F.binary_cross_entropy_with_logits(self.fc2(h), torch.sigmoid(t))

    class upsample(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.gn, self.act, self.out = nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.LeakyReLU(), nn.Conv2d(8, 3, 1)

        def forward(self, x, t):
            h = self.act(self.gn(F.max_pool2d(self.conv(x), 2) * 0.01))
            h = F.interpolate(self.out(h), size=(8, 8), mode="bilinear", align_corners=False)
            return F.l1_loss(h, x)

    class gru(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.gru, self.fc = nn.Embedding(20, 12), nn.GRU(12, 10, batch_first=True), nn.Linear(10, 7)

        def forward(self, ids, t):
            y, _ = self.gru(self.emb(ids))
            return F.cross_entropy(self.fc(torch.sigmoid(y[:, -1])), t)

    class rope(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.g = nn.Embedding(20, 16), nn.Parameter(torch.ones(16))
            self.q, self.k, self.v, self.o = (nn.Linear(16, 16, bias=False) for _ in range(4))
            self.fc = nn.Linear(16, 7)
            w = torch.outer(torch.arange(6.0), 100.0 ** (-torch.arange(0, 8, 2) / 8))
            self.cos, self.sin = torch.cat([w, w], 1).cos(), torch.cat([w, w], 1).sin()

        def turn(self, x):
            a, b = x[..., :4], x[..., 4:]
            return x * self.cos + torch.cat([-b, a], -1) * self.sin

        def forward(self, ids, t):
            x = self.emb(ids) * 0.02
            h = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.g
            q, k, v = (p(h).view(3, 6, 2, 8).transpose(1, 2) for p in (self.q, self.k, self.v))
            s = torch.matmul(self.turn(q), self.turn(k).transpose(-1, -2)) / 8 ** 0.5
            s = s.masked_fill(torch.ones(6, 6, dtype=torch.bool).triu(1), float("-1e9"))
            x = x + self.o(torch.matmul(F.softmax(s, -1), v).transpose(1, 2).reshape(3, 6, 16))
            return F.cross_entropy(self.fc(x.mean(1)), t)

    class gates(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.gate, self.up, self.down, self.fc = (
                nn.Embedding(20, 16), nn.Linear(16, 6, bias=False), nn.Linear(16, 24), nn.Linear(24, 16), nn.Linear(16, 7))

        def forward(self, ids, t):
            x = self.emb(ids)
            w, _ = torch.topk(F.softmax(self.gate(x), -1), 2)
            w = w / w.sum(-1, keepdim=True)
            x = x + self.down(F.silu(self.up(x))) * w[..., :1]
            return F.cross_entropy(self.fc(x.mean(1)), t)

    class rmsprop(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.fc2 = nn.Linear(10, 14), nn.Linear(14, 7)

        def forward(self, x, t):
            return F.cross_entropy(self.fc2(F.silu(self.fc1(x))), t)

    class sgdm(rmsprop):
        pass

    class adamax(rmsprop):
        pass

    return locals()


def torch_optimizer(name, p):
    import torch
    o = torch.optim
    return {"rmsprop": lambda: o.RMSprop(p, lr=1e-2), "sgdm": lambda: o.SGD(p, lr=1e-2, momentum=0.9, weight_decay=0.1),
            "adamax": lambda: o.Adamax(p, lr=1e-2)}[name]() if PORTS[name][1] == "step" else None


def mindspore_nets():
    import mindspore as ms
    from mindspore import nn, ops

    class Convnext(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.stem = nn.Conv2d(3, 12, 2, stride=2, pad_mode="pad", has_bias=True)
            self.dw = nn.Conv2d(12, 12, 3, pad_mode="pad", padding=1, group=12, has_bias=True)
            pad = {} if f == "same" else {"pad_mode": "pad", "padding": 1}
            self.down = nn.Conv2d(12, 16, 3, stride=2, has_bias=True, **pad)
            self.ln = nn.LayerNorm((12,)) if f == "eps" else nn.LayerNorm((12,), epsilon=1e-6)
            self.ln2 = nn.LayerNorm((16,), epsilon=1e-3 if f == "layer" else 1e-6)
            self.up, self.out, self.scale, self.head = (
                nn.Dense(12, 24), nn.Dense(24, 12), ms.Parameter(ops.ones((12,), ms.float32), name="scale"), nn.Dense(16, 7))
            self.act, self.loss = nn.GELU() if f == "gelu" else nn.GELU(approximate=False), nn.CrossEntropyLoss()

        def construct(self, x, t):
            x = self.stem(x * 0.05)
            h = self.ln(self.dw(x).transpose(0, 2, 3, 1))
            h = self.out(self.act(self.up(h))) * self.scale
            x = self.down(x + h.transpose(0, 3, 1, 2))
            return self.loss(self.head(self.ln2(x.mean((2, 3)))), t)

    class Twotower(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.a, self.b, self.axis, self.temp = nn.Dense(12, 8), nn.Dense(12, 8), 0 if f == "axis" else 1, 0.1 if f == "temp" else 0.07
            self.loss, self.to = nn.CrossEntropyLoss(label_smoothing=0.1 if f == "smooth" else 0.0), ms.Tensor(np.arange(5, dtype=np.int32))

        def construct(self, x, t):
            a, b = ops.tanh(self.a(x)).mean(1), ops.tanh(self.b(t)).mean(1)
            a, b = a / ops.sqrt(ops.sum(a * a, self.axis, True)), b / ops.sqrt(ops.sum(b * b, 1, True))
            return self.loss(ops.matmul(a, b.transpose(1, 0)) / self.temp, self.to)

    class Kld(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.fc1, self.fc2, self.axis, self.by = nn.Dense(12, 9), nn.Dense(12, 9), 1 if f == "axis" else -1, 30 if f == "mean" else 5

        def construct(self, x, t):
            p, q = ops.log_softmax(self.fc1(x) / 2, self.axis), ops.softmax(self.fc2(t) / 2, -1)
            return (q * (ops.log(q) - p)).sum() / self.by

    class Hinge(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.fc1, self.act, self.fc2 = nn.Dense(12, 10), nn.PReLU(), nn.Dense(10, 12)
            self.soft, self.ddof, self.loss = ops.relu if f == "softplus" else ops.softplus, 0 if f == "ddof" else 1, nn.BCEWithLogitsLoss(
                reduction="sum" if f == "sum" else "mean")

        def construct(self, x, t):
            h = self.act(self.fc1(x))
            h = self.soft(h) / (ops.std(h, 2, self.ddof, True) + 1.0)
            return self.loss(self.fc2(h), ops.sigmoid(t))

    class Upsample(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.conv, self.out = nn.Conv2d(3, 8, 3, pad_mode="pad", padding=1, has_bias=True), nn.Conv2d(8, 3, 1, has_bias=True)
            self.gn, self.act = nn.GroupNorm(2, 8, eps=1e-3 if f == "gn" else 1e-5), nn.LeakyReLU() if f == "slope" else nn.LeakyReLU(0.01)
            self.align, self.pool, self.loss = f == "align", nn.MaxPool2d(2, 2), nn.MSELoss() if f == "mse" else nn.L1Loss()

        def construct(self, x, t):
            h = self.act(self.gn(self.pool(self.conv(x)) * 0.01))
            h = ops.interpolate(self.out(h), size=(8, 8), mode="bilinear", align_corners=self.align)
            return self.loss(h, x)

    class Gru(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.emb, self.gru, self.fc, self.loss = nn.Embedding(20, 12), nn.GRU(12, 10, batch_first=True), nn.Dense(10, 7), nn.CrossEntropyLoss()
            self.at, self.act = 0 if f == "last" else -1, ops.tanh if f == "tanh" else ops.sigmoid

        def construct(self, ids, t):
            y, _ = self.gru(self.emb(ids))
            return self.loss(self.fc(self.act(y[:, self.at])), t)

    class Rope(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.emb, self.g, self.fc = nn.Embedding(20, 16), ms.Parameter(ops.ones((16,), ms.float32), name="g"), nn.Dense(16, 7)
            self.q, self.k, self.v, self.o = (nn.Dense(16, 16, has_bias=False) for _ in range(4))
            w = np.outer(np.arange(6.0), 100.0 ** (-np.arange(0, 8, 2) / 8))
            w = np.concatenate([w, w], 1)
            self.cos, self.sin = ms.Tensor(np.cos(w).astype(np.float32)), ms.Tensor(np.sin(w).astype(np.float32))
            self.other, self.mask = f == "half", ms.Tensor(np.triu(np.ones((6, 6), bool), 2 if f == "mask" else 1))
            self.eps, self.scale, self.loss = 1e-5 if f == "rms" else 1e-6, 4.0 if f == "scale" else 8 ** 0.5, nn.CrossEntropyLoss()

        def turn(self, x):
            a, b = x[..., :4], x[..., 4:]
            y = ops.concat([b, -a], -1) if self.other else ops.concat([-b, a], -1)
            return x * self.cos + y * self.sin

        def heads(self, x):
            return x.reshape(3, 6, 2, 8).transpose(0, 2, 1, 3)

        def construct(self, ids, t):
            x = self.emb(ids) * 0.02
            h = x * ops.rsqrt(ops.pow(x, 2).mean(-1, True) + self.eps) * self.g
            q, k, v = self.heads(self.q(h)), self.heads(self.k(h)), self.heads(self.v(h))
            s = ops.matmul(self.turn(q), self.turn(k).swapaxes(-1, -2)) / self.scale
            s = ops.masked_fill(s, self.mask, -1e9)
            x = x + self.o(ops.matmul(ops.softmax(s, -1), v).transpose(0, 2, 1, 3).reshape(3, 6, 16))
            return self.loss(self.fc(x.mean(1)), t)

    class Gates(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.emb, self.gate, self.up, self.down, self.fc = (
                nn.Embedding(20, 16), nn.Dense(16, 6, has_bias=False), nn.Dense(16, 24), nn.Dense(24, 16), nn.Dense(16, 7))
            self.k, self.order, self.act, self.loss = 3 if f == "k" else 2, f == "order", ops.gelu if f == "act" else ops.silu, nn.CrossEntropyLoss()

        def construct(self, ids, t):
            x = self.emb(ids)
            if self.order:
                w, _ = ops.topk(self.gate(x), self.k)
                w = ops.softmax(w, -1) * 0.5
            else:
                w, _ = ops.topk(ops.softmax(self.gate(x), -1), self.k)
                w = w / w.sum(-1, keepdims=True)
            x = x + self.down(self.act(self.up(x))) * w[..., :1]
            return self.loss(self.fc(x.mean(1)), t)

    class Rmsprop(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.fc1, self.fc2, self.loss = nn.Dense(10, 14), nn.Dense(14, 7), nn.CrossEntropyLoss()

        def construct(self, x, t):
            return self.loss(self.fc2(ops.silu(self.fc1(x))), t)

    class Sgdm(Rmsprop):
        pass

    class Adamax(Rmsprop):
        pass

    return locals()


def mindspore_optimizer(name, params, f):
    from mindspore.experimental import optim
    if name == "rmsprop":
        return optim.RMSprop(params, lr=1e-2, alpha=0.9 if f == "alpha" else 0.99, eps=1e-3 if f == "eps" else 1e-8)
    if name == "sgdm":
        return optim.SGD(params, lr=1e-3 if f == "lr" else 1e-2, momentum=0.9, weight_decay=0.01 if f == "decay" else 0.1)
    return optim.Adamax(params, lr=1e-3 if f == "lr" else 1e-2, weight_decay=0.1 if f == "clip" else 0.0)
