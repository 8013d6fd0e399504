"""More ports for ports.py: the set `judge`, which no rule was made with. Networks, defaults and optimizers that the others
have not; the same conventions."""
import numpy as np

PORTS = {
    "bert": ("judge", "ids", False, {
        "gelu": ("GeLU", "tanh"), "eps": ("LayerNorm", "eps"), "axis": ("Softmax", "dim"), "scale": ("Mul Div RealDiv Softmax BatchMatMul", ""),
        "pool": ("fc-Dense fc.Dense pool-Dense MatMul StridedSlice", ""), "smooth": ("CrossEntropy NLLLoss SoftmaxCross Div loss-Cross", "")}),
    "seg": ("judge", "img", True, {
        "leaky": ("LeakyReLU Mul Maximum", "0.2"), "align": ("ResizeBilinearV2", "align"), "same": ("Conv2D", "pad"),
        "momentum": ("BatchNorm", "momentum"), "beta": ("SmoothL1Loss", "beta"), "reduction": ("SmoothL1Loss", "reduction")}),
    "pool": ("judge", "img", False, {
        "valid": ("AvgPool", ""), "ddof": ("ReduceStd Pow ReduceMean", "place"), "eps": ("GroupNorm", "eps"), "hswish": ("HSigmoid HSwish Sigmoid", "")}),
    "rmsnet": ("judge", "ids", False, {
        "rms": ("Rsqrt Add ReduceMean norm-", "1e-06"), "swap": ("Mul SiLU Sigmoid", ""), "tanh": ("GeLU", "tanh"), "elu": ("Elu SeLU", "")}),
    "bilstm": ("judge", "ids", False, {"gates": ("LSTM lstm-LSTM", "order")}),
    "mlploss": ("judge", "x", False, {"delta": ("SmoothL1Loss", ""), "mean": ("ReduceMean", "dim along"), "var": ("ReduceStd", "unbiased")}),
    "wdecay": ("judge", "step", True, {"bias": ("opt-", "correction"), "wd": ("opt-", "weight_decay")}),
    "sgd": ("judge", "step", True, {"nesterov": ("opt-", "nesterov"), "damp": ("opt-", "dampening")}),
    "adamexp": ("judge", "step", True, {"eps": ("opt-", "eps"), "lr": ("opt-", "lr")}),
    "adagrad": ("judge", "step", True, {"accum": ("opt-", "accum"), "lr": ("opt-", "lr"), "root": ("opt-", "root")}),
}


def torch_nets():
    import torch
    from torch import nn
    import torch.nn.functional as F

    class bert(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.pos, self.ln1, self.ln2 = nn.Embedding(20, 24), nn.Embedding(6, 24), nn.LayerNorm(24), nn.LayerNorm(24)
            self.q, self.k, self.v, self.o = (nn.Linear(24, 24) for _ in range(4))
            self.up, self.down, self.pool, self.fc = nn.Linear(24, 40), nn.Linear(40, 24), nn.Linear(24, 24), nn.Linear(24, 7)

        def forward(self, ids, t):
            x = self.ln1((self.emb(ids) + self.pos.weight) * 0.01)
            q, k, v = (p(x).view(3, 6, 3, 8).permute(0, 2, 1, 3) for p in (self.q, self.k, self.v))
            a = F.softmax(torch.matmul(q, k.transpose(-1, -2)) / 8 ** 0.5, dim=-1)
            x = self.ln2(x + self.o(torch.matmul(a, v).permute(0, 2, 1, 3).reshape(3, 6, 24)))
            x = x + self.down(F.gelu(self.up(x)))
            return F.cross_entropy(self.fc(torch.tanh(self.pool(x[:, 0]))), t)

    class seg(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.bn1, self.act = nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), nn.LeakyReLU()
            self.conv2, self.bn2, self.head = nn.Conv2d(6, 10, 3, stride=2, padding=1), nn.BatchNorm2d(10), nn.Conv2d(10, 3, 1)

        def forward(self, x, t):
            h = self.act(self.bn1(self.conv1(x)))
            h = self.act(self.bn2(self.conv2(h)))
            h = F.interpolate(self.head(h), size=(8, 8), mode="bilinear", align_corners=False)
            return F.smooth_l1_loss(h, x)

    class pool(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.gn, self.conv2 = nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(4, 8), nn.Conv2d(8, 8, 3, padding=1)
            self.fc1, self.fc2 = nn.Linear(128, 16), nn.Linear(16, 7)

        def forward(self, x, t):
            x = F.relu(self.gn(self.conv1(x) * 0.02))
            x = F.avg_pool2d(F.hardsigmoid(self.conv2(x)), 2)
            x = self.fc1(x.flatten(1))
            x = (x - x.mean(1, keepdim=True)) / x.std(1, keepdim=True)
            return F.cross_entropy(self.fc2(x), t)

    class rmsnet(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.g = nn.Embedding(20, 16), nn.Parameter(torch.ones(16))
            self.gate, self.up, self.down = (nn.Linear(*s, bias=False) for s in ((16, 24), (16, 24), (24, 16)))
            self.mid, self.fc = nn.Linear(16, 16), nn.Linear(16, 7)

        def norm(self, x):
            return x * torch.rsqrt(torch.mean(x * x, -1, keepdim=True) + 1e-5) * self.g

        def forward(self, ids, t):
            x = self.emb(ids) * 0.01
            h = self.norm(x)
            x = x + self.down(F.silu(self.gate(h)) * self.up(h))
            x = F.gelu(self.mid(F.elu(x)), approximate="tanh")
            return F.cross_entropy(self.fc(x.sum(1)), t)

    class bilstm(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.lstm, self.fc = nn.Embedding(20, 8), nn.LSTM(8, 6, bidirectional=True, batch_first=True), nn.Linear(12, 7)

        def forward(self, ids, t):
            y, _ = self.lstm(self.emb(ids))
            return F.cross_entropy(self.fc(y.mean(1)), t)

    class mlploss(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.fc2 = nn.Linear(12, 10), nn.Linear(10, 12)

        def forward(self, x, t):
            h = torch.tanh(self.fc1(x))
            h = h / torch.std(h, 2, keepdim=True)
            h = h - h.mean((1, 2), keepdim=True)
            return F.smooth_l1_loss(self.fc2(h), t, beta=0.5)

    class wdecay(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.fc2 = nn.Linear(10, 12), nn.Linear(12, 7)

        def forward(self, x, t):
            return F.cross_entropy(self.fc2(torch.tanh(self.fc1(x))), t)

    class sgd(wdecay):
        pass

    class adamexp(wdecay):
        pass

    class adagrad(wdecay):
        pass

    return locals()


def torch_optimizer(name, p):
    import torch
    o = torch.optim
    return {"wdecay": lambda: o.AdamW(p, lr=1e-2, weight_decay=0.1), "sgd": lambda: o.SGD(p, lr=1e-2, momentum=0.8, weight_decay=1e-2),
            "adamexp": lambda: o.Adam(p, lr=1e-2), "adagrad": lambda: o.Adagrad(p, lr=1e-2)}[name]() if PORTS[name][1] == "step" else None


def mindspore_nets():
    import mindspore as ms
    from mindspore import nn, ops

    class Bert(nn.Cell):
        def __init__(self, f):
            super().__init__()
            eps = 1e-7 if f == "eps" else 1e-5
            self.emb, self.pos = nn.Embedding(20, 24), nn.Embedding(6, 24)
            self.ln1, self.ln2 = nn.LayerNorm((24,), epsilon=eps), nn.LayerNorm((24,), epsilon=eps)
            self.q, self.k, self.v, self.o = (nn.Dense(24, 24) for _ in range(4))
            self.up, self.down, self.pool, self.fc = nn.Dense(24, 40), nn.Dense(40, 24), nn.Dense(24, 24), nn.Dense(24, 7)
            self.act = nn.GELU() if f == "gelu" else nn.GELU(approximate=False)
            self.axis, self.scale, self.at = 2 if f == "axis" else -1, 8.0 if f == "scale" else 8 ** 0.5, -1 if f == "pool" else 0
            self.loss = nn.CrossEntropyLoss(label_smoothing=0.1 if f == "smooth" else 0.0)

        def heads(self, x):
            return x.reshape(3, 6, 3, 8).transpose(0, 2, 1, 3)

        def construct(self, ids, t):
            x = self.ln1((self.emb(ids) + self.pos.embedding_table) * 0.01)
            q, k, v = self.heads(self.q(x)), self.heads(self.k(x)), self.heads(self.v(x))
            a = ops.softmax(ops.matmul(q, k.swapaxes(-1, -2)) / self.scale, axis=self.axis)
            x = self.ln2(x + self.o(ops.matmul(a, v).transpose(0, 2, 1, 3).reshape(3, 6, 24)))
            x = x + self.down(self.act(self.up(x)))
            return self.loss(self.fc(ops.tanh(self.pool(x[:, self.at]))), t)

    class Seg(nn.Cell):
        def __init__(self, f):
            super().__init__()
            m = 0.1 if f == "momentum" else 0.9
            pad = {} if f == "same" else {"pad_mode": "pad", "padding": 1}
            self.conv1, self.bn1 = nn.Conv2d(3, 6, 3, pad_mode="pad", padding=1, has_bias=True), nn.BatchNorm2d(6, momentum=m)
            self.conv2, self.bn2 = nn.Conv2d(6, 10, 3, stride=2, has_bias=True, **pad), nn.BatchNorm2d(10, momentum=m)
            self.act, self.head = nn.LeakyReLU() if f == "leaky" else nn.LeakyReLU(0.01), nn.Conv2d(10, 3, 1, pad_mode="valid", has_bias=True)
            self.align = f == "align"
            self.loss = nn.SmoothL1Loss(beta=0.5 if f == "beta" else 1.0, reduction="none" if f == "reduction" else "mean")

        def construct(self, x, t):
            h = self.act(self.bn1(self.conv1(x)))
            h = self.act(self.bn2(self.conv2(h)))
            h = ops.interpolate(self.head(h), size=(8, 8), mode="bilinear", align_corners=self.align)
            return self.loss(h, x)

    class Pool(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.conv1, self.gn = nn.Conv2d(3, 8, 3, pad_mode="pad", padding=1, has_bias=True), nn.GroupNorm(4, 8, eps=1e-3 if f == "eps" else 1e-5)
            self.conv2 = nn.Conv2d(8, 8, 3, has_bias=True)
            self.fc1, self.fc2, self.loss, self.relu = nn.Dense(128, 16), nn.Dense(16, 7), nn.CrossEntropyLoss(), nn.ReLU()
            self.avg = nn.AvgPool2d(2, 2) if f != "valid" else nn.AvgPool2d(3, 2, pad_mode="same")
            self.ddof, self.hs = 0 if f == "ddof" else 1, f == "hswish"

        def construct(self, x, t):
            x = self.relu(self.gn(self.conv1(x) * 0.02))
            x = self.conv2(x)
            x = self.avg(ops.sigmoid(x) if self.hs else ops.hardsigmoid(x))
            x = self.fc1(x.reshape(4, -1))
            x = (x - x.mean(1, True)) / x.std(1, self.ddof, True)
            return self.loss(self.fc2(x), t)

    class Rmsnet(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.emb, self.g = nn.Embedding(20, 16), ms.Parameter(ops.ones((16,), ms.float32), name="g")
            self.gate, self.up, self.down = nn.Dense(16, 24, has_bias=False), nn.Dense(16, 24, has_bias=False), nn.Dense(24, 16, has_bias=False)
            self.mid, self.fc, self.eps, self.swap = nn.Dense(16, 16), nn.Dense(16, 7), 1e-6 if f == "rms" else 1e-5, f == "swap"
            self.act, self.elu, self.loss = "none" if f == "tanh" else "tanh", nn.ELU(1.0) if f != "elu" else nn.SeLU(), nn.CrossEntropyLoss()

        def construct(self, ids, t):
            x = self.emb(ids) * 0.01
            h = x * ops.rsqrt(ops.mean(x * x, -1, True) + self.eps) * self.g
            a, b = self.gate(h), self.up(h)
            x = x + self.down(ops.silu(b) * a if self.swap else ops.silu(a) * b)
            x = ops.gelu(self.mid(self.elu(x)), approximate=self.act)
            return self.loss(self.fc(x.sum(1)), t)

    class Bilstm(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.emb, self.lstm = nn.Embedding(20, 8), nn.LSTM(8, 6, bidirectional=True, batch_first=True)
            self.fc, self.loss = nn.Dense(12, 7), nn.CrossEntropyLoss()

        def construct(self, ids, t):
            y, _ = self.lstm(self.emb(ids))
            return self.loss(self.fc(y.mean(1)), t)

    class Mlploss(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.fc1, self.fc2 = nn.Dense(12, 10), nn.Dense(10, 12)
            self.loss, self.axes = nn.SmoothL1Loss(beta=1.0 if f == "delta" else 0.5, reduction="mean"), 1 if f == "mean" else (1, 2)
            self.ddof = 0 if f == "var" else 1

        def construct(self, x, t):
            h = ops.tanh(self.fc1(x))
            h = h / ops.std(h, 2, self.ddof, True)
            h = h - ops.mean(h, self.axes, True)
            return self.loss(self.fc2(h), t)

    class Wdecay(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.fc1, self.fc2, self.loss = nn.Dense(10, 12), nn.Dense(12, 7), nn.CrossEntropyLoss()

        def construct(self, x, t):
            return self.loss(self.fc2(ops.tanh(self.fc1(x))), t)

    class Sgd(Wdecay):
        pass

    class Adamexp(Wdecay):
        pass

    class Adagrad(Wdecay):
        pass

    return locals()


def mindspore_optimizer(name, params, f):
    from mindspore import nn
    from mindspore.experimental import optim
    if name == "wdecay":
        if f == "bias":
            return nn.AdamWeightDecay(params, 1e-2, eps=1e-8, weight_decay=0.1)
        return optim.AdamW(params, lr=1e-2, weight_decay=0.01 if f == "wd" else 0.1)
    if name == "sgd":
        return nn.SGD(params, 1e-2, momentum=0.8, weight_decay=1e-2, nesterov=f == "nesterov", dampening=0.5 if f == "damp" else 0.0)
    if name == "adamexp":
        return optim.Adam(params, lr=1e-3 if f == "lr" else 1e-2, eps=1e-3 if f == "eps" else 1e-8)
    if f == "right":
        return optim.Adagrad(params, lr=1e-2)
    return nn.Adagrad(params, accum=0.1 if f == "accum" else 0.0, learning_rate=1e-3 if f == "lr" else 1e-2)
