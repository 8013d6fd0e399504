"""A sixth set of ports for ports.py: networks of other families again, most faults an argument or a default, written before any
verdict on them was seen. The same conventions."""
import numpy as np

PORTS = {
    "dense": ("sixth", "img", True, {
        "momentum": ("BatchNorm", "momentum"), "order": ("Concat", ""), "mode": ("MaxPool AvgPool MaxPoolWithArgmax", "pad")}),
    "super": ("sixth", "img", False, {
        "slope": ("PReLU PReLUKernel", "weight"), "sum": ("ReduceSum ReduceMean loss-L1Loss Abs", "reduction"),
        "nearest": ("ResizeNearestNeighborV2 ResizeNearestNeighbor ResizeBilinearV2", "align_corners")}),
    "focal": ("sixth", "x", False, {
        "gamma": ("Pow", "3"), "alpha": ("Mul", "0.5"), "pos": ("BCEWithLogitsLoss", "pos_weight")}),
    "flow": ("sixth", "x", False, {"sign": ("Sub Add", ""), "softplus": ("Softplus Exp Log1p ReLU", ""), "halves": ("Split Concat StridedSlice", "")}),
    "ssm": ("sixth", "ids", False, {"same": ("Conv2D DepthwiseConv2dNative", "pad"), "axis": ("CumSum CumsumExt", "dim"), "elu": ("Elu CeLU", "alpha")}),
    "gcn": ("sixth", "x", False, {"root": ("Rsqrt Reciprocal Div RealDiv", ""), "delta": ("SmoothL1Loss loss-HuberLoss", "delta"), "axis": ("LogSoftmax Softmax ReduceMax", "dim")}),
    "tfive": ("sixth", "ids", False, {"eps": ("Rsqrt Add", "0.001"), "turned": ("Transpose Add", ""), "ignore": ("loss-Cross NLLLoss Mul ReduceSum", "ignore_index")}),
    "contrast": ("sixth", "x", False, {
        "l2": ("L2Normalize LpNorm Maximum Div", "eps"), "temp": ("Div RealDiv Mul", "0.5"), "smooth": ("loss-Cross NLLLoss Mul ReduceSum Div Add", "smoothing")}),
    "duel": ("sixth", "x", False, {"mean": ("ReduceMean", "dim"), "hard": ("HShrink SoftShrink", "0.1"), "batchmean": ("KLDivLoss loss-KLDivLoss", "reduction")}),
    "cosine": ("sixth", "ids", False, {"rows": ("Gather emb-Embedding", ""), "ln": ("LayerNorm", "eps"), "gelu": ("GeLU Div Erf Mul", "erf approximate")}),
    "asgd": ("sixth", "step", True, {"lr": ("opt-", "lr"), "lambd": ("opt-", "lambd")}),
    "nesterov": ("sixth", "step", True, {"off": ("opt-", "nesterov"), "decay": ("opt-", "weight_decay")}),
    "groups": ("sixth", "step", True, {"all": ("opt-", "weight_decay"), "eps": ("opt-", "eps")}),
}


def torch_nets():
    import torch
    from torch import nn
    import torch.nn.functional as F

    class dense(nn.Module):
        def __init__(self):
            super().__init__()
            self.bn1, self.conv1 = nn.BatchNorm2d(3), nn.Conv2d(3, 5, 3, padding=1, bias=False)
            self.bn2, self.conv2 = nn.BatchNorm2d(8), nn.Conv2d(8, 5, 3, padding=1, bias=False)
            self.trans, self.fc = nn.Conv2d(13, 6, 1), nn.Linear(6 * 16, 7)

        def forward(self, x, t):
            x = torch.cat([x, self.conv1(F.relu(self.bn1(x)))], 1)
            x = torch.cat([x, self.conv2(F.relu(self.bn2(x)))], 1)
            x = F.max_pool2d(self.trans(x), 3, 2, 1)
            return F.cross_entropy(self.fc(x.flatten(1)), t)

    class super_(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.act, self.conv2 = nn.Conv2d(3, 8, 3, padding=1), nn.PReLU(8), nn.Conv2d(8, 12, 3, padding=1)
            self.act.weight.data.uniform_(0.05, 0.4)

        def forward(self, x, t):
            h = self.act(self.conv1(F.avg_pool2d(x, 2)))
            y = F.pixel_shuffle(self.conv2(h), 2) + F.interpolate(F.avg_pool2d(x, 2), size=(8, 8), mode="bilinear", align_corners=True)
            return F.l1_loss(y, x)

    class focal(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.fc2 = nn.Linear(12, 14), nn.Linear(14, 12)
            self.pos = torch.tensor(np.linspace(0.5, 3, 12).astype(np.float32))

        def forward(self, x, t):
            z = self.fc2(F.relu(self.fc1(x)))
            y = (t > 0).float()
            p = torch.sigmoid(z)
            q = p * y + (1 - p) * (1 - y)
            f = -torch.log(q + 1e-6) * torch.pow(1 - q, 2) * 0.25
            return f.sum(-1).mean() + F.binary_cross_entropy_with_logits(z, y, pos_weight=self.pos)

    class flow(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.s = nn.Linear(6, 16), nn.Linear(16, 12), nn.Linear(12, 12)

        def forward(self, x, t):
            p, q = torch.chunk(self.s(x), 2, dim=-1)
            scale, shift = torch.split(self.b(torch.tanh(self.a(p))), 6, dim=-1)
            scale = F.softplus(scale)
            z = torch.cat([p, q * scale + shift], -1)
            return (0.5 * z * z).sum(-1).mean() - torch.log(scale).sum(-1).mean()

    class ssm(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.inp = nn.Embedding(20, 8), nn.Linear(8, 20)
            self.conv, self.out = nn.Conv1d(10, 10, 3, padding=2, groups=10), nn.Linear(10, 7)

        def forward(self, ids, t):
            x, z = self.inp(self.emb(ids)).chunk(2, dim=-1)
            x = F.silu(self.conv(x.transpose(1, 2))[..., :6]).transpose(1, 2)
            d = F.celu(x) + 1.5
            h = torch.cumsum(d * x, 1) / torch.cumsum(d, 1)
            y = h * F.silu(z)
            return F.cross_entropy(self.out(y[:, -1]), t)

    class gcn(nn.Module):
        def __init__(self):
            super().__init__()
            r = np.random.RandomState(21)
            a = np.triu(r.rand(6, 6) > 0.5, 1)
            self.adj = torch.from_numpy((a | a.T | np.eye(6, dtype=bool)).astype(np.float32))
            self.fc1, self.fc2 = nn.Linear(12, 9), nn.Linear(9, 12)

        def forward(self, x, t):
            d = torch.rsqrt(self.adj.sum(-1))
            a = self.adj * d.unsqueeze(0) * d.unsqueeze(1)
            h = F.relu(torch.matmul(a, self.fc1(x)))
            y = F.log_softmax(torch.matmul(a, self.fc2(h)), dim=-1)
            return F.huber_loss(y, t * 3)

    class tfive(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.g, self.bias = nn.Embedding(20, 16), nn.Parameter(torch.ones(16)), nn.Parameter(torch.randn(2, 6, 6))
            self.q, self.k, self.v, self.o = (nn.Linear(16, 16, bias=False) for _ in range(4))
            self.wi, self.wo = nn.Linear(16, 24, bias=False), nn.Linear(24, 16, bias=False)

        def forward(self, ids, t):
            x = self.emb(ids)
            h = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.g
            q, k, v = (p(h).view(3, 6, 2, 8).permute(0, 2, 1, 3) for p in (self.q, self.k, self.v))
            s = torch.matmul(q, k.permute(0, 1, 3, 2)) + self.bias
            x = x + self.o(torch.matmul(F.softmax(s, dim=-1), v).permute(0, 2, 1, 3).reshape(3, 6, 16))
            x = x + self.wo(F.relu(self.wi(x)))
            y = torch.matmul(x, self.emb.weight.t())
            return F.cross_entropy(y.reshape(18, 20), ids.reshape(18), ignore_index=0)

    class contrast(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(12, 10), nn.Linear(10, 8)

        def forward(self, x, t):
            a = F.normalize(self.b(F.relu(self.a(x))).mean(1) * 0.01, dim=-1)
            b = F.normalize(self.b(F.relu(self.a(t))).mean(1) * 0.01, dim=-1)
            return F.cross_entropy(torch.matmul(a, b.t()) / 0.2, torch.arange(5), label_smoothing=0.1)

    class duel(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.adv, self.val = nn.Linear(12, 16), nn.Linear(16, 12), nn.Linear(16, 1)

        def forward(self, x, t):
            h = F.hardshrink(F.tanh(self.fc(x)), 0.25)
            a = self.adv(h)
            q = self.val(h) + a - a.mean(-1, keepdim=True)
            return F.kl_div(F.log_softmax(q, dim=-1), F.softmax(t, dim=-1), reduction="sum")

    class cosine(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.ln, self.fc1, self.fc2 = nn.Embedding(20, 10), nn.LayerNorm(10, eps=1e-6), nn.Linear(10, 24), nn.Linear(24, 7)

        def forward(self, ids, t):
            x = self.ln(self.emb(ids) * 0.01)
            x = self.fc2(F.gelu(self.fc1(x), approximate="tanh")).mean(1)
            a, b = x, F.one_hot(t, 7).float()
            return (1 - (a * b).sum(-1) / torch.sqrt((a * a).sum(-1) * (b * b).sum(-1))).mean()

    class asgd(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.fc2 = nn.Linear(10, 14), nn.Linear(14, 7)

        def forward(self, x, t):
            return F.cross_entropy(self.fc2(torch.tanh(self.fc1(x))), t)

    class nesterov(asgd):
        pass

    class groups(asgd):
        pass

    return {**locals(), "super": super_}


def torch_optimizer(name, p):
    import torch
    o = torch.optim
    if PORTS[name][1] != "step":
        return None
    p = list(p)
    two = [{"params": [v for v in p if v.dim() > 1], "weight_decay": 0.1}, {"params": [v for v in p if v.dim() < 2], "weight_decay": 0.0}]
    return {"asgd": lambda: o.ASGD(p, lr=1e-2), "nesterov": lambda: o.SGD(p, lr=1e-2, momentum=0.9, nesterov=True),
            "groups": lambda: o.AdamW(two, lr=1e-2)}[name]()


def mindspore_nets():
    import mindspore as ms
    from mindspore import nn, ops

    class Dense(nn.Cell):
        def __init__(self, f):
            super().__init__()
            m = 0.1 if f == "momentum" else 0.9
            self.bn1, self.conv1 = nn.BatchNorm2d(3, momentum=m), nn.Conv2d(3, 5, 3, pad_mode="pad", padding=1)
            self.bn2, self.conv2 = nn.BatchNorm2d(8, momentum=m), nn.Conv2d(8, 5, 3, pad_mode="pad", padding=1)
            self.trans, self.fc, self.other, self.loss = nn.Conv2d(13, 6, 1, has_bias=True), nn.Dense(6 * 16, 7), f == "order", nn.CrossEntropyLoss()
            self.pool = nn.MaxPool2d(3, 2, pad_mode="same") if f == "mode" else nn.MaxPool2d(3, 2, pad_mode="pad", padding=1)

        def construct(self, x, t):
            x = ops.cat([x, self.conv1(ops.relu(self.bn1(x)))], 1)
            y = self.conv2(ops.relu(self.bn2(x)))
            x = ops.cat([y, x] if self.other else [x, y], 1)
            return self.loss(self.fc(self.pool(self.trans(x)).reshape(4, -1)), t)

    class Super(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.conv1, self.act = nn.Conv2d(3, 8, 3, pad_mode="pad", padding=1, has_bias=True), nn.PReLU(8)
            self.conv2, self.pool, self.corners = nn.Conv2d(8, 12, 3, pad_mode="pad", padding=1, has_bias=True), nn.AvgPool2d(2, 2), f != "nearest"
            self.loss = nn.L1Loss(reduction="sum" if f == "sum" else "mean")

        def construct(self, x, t):
            p = self.pool(x)
            y = ops.pixel_shuffle(self.conv2(self.act(self.conv1(p))), 2)
            return self.loss(y + ops.interpolate(p, size=(8, 8), mode="bilinear", align_corners=self.corners), x)

    class Focal(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.fc1, self.fc2, self.gamma, self.alpha = nn.Dense(12, 14), nn.Dense(14, 12), 3 if f == "gamma" else 2, 0.5 if f == "alpha" else 0.25
            pos = np.linspace(0.5, 3, 12).astype(np.float32)
            self.bce = nn.BCEWithLogitsLoss(pos_weight=None if f == "pos" else ms.Tensor(pos))

        def construct(self, x, t):
            z = self.fc2(ops.relu(self.fc1(x)))
            y = (t > 0).astype(ms.float32)
            p = ops.sigmoid(z)
            q = p * y + (1 - p) * (1 - y)
            f = -ops.log(q + 1e-6) * ops.pow(1 - q, self.gamma) * self.alpha
            return f.sum(-1).mean() + self.bce(z, y)

    class Flow(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.a, self.b, self.s = nn.Dense(6, 16), nn.Dense(16, 12), nn.Dense(12, 12)
            self.plus, self.act, self.other = f == "sign", ops.exp if f == "softplus" else ops.softplus, f == "halves"

        def construct(self, x, t):
            p, q = ops.chunk(self.s(x), 2, axis=-1)
            if self.other:
                p, q = q, p
            scale, shift = ops.split(self.b(ops.tanh(self.a(p))), 6, axis=-1)
            scale = self.act(scale)
            z = ops.cat([p, q * scale + shift], -1)
            det = ops.log(scale).sum(-1).mean()
            z = (0.5 * z * z).sum(-1).mean()
            return z + det if self.plus else z - det

    class Ssm(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.emb, self.inp, self.out = nn.Embedding(20, 8), nn.Dense(8, 20), nn.Dense(10, 7)
            pad = {} if f == "same" else {"pad_mode": "pad", "padding": 2}
            self.conv, self.axis, self.alpha, self.loss = nn.Conv1d(10, 10, 3, group=10, has_bias=True, **pad), 0 if f == "axis" else 1, 0.3 if f == "elu" else 1.0, nn.CrossEntropyLoss()

        def construct(self, ids, t):
            x, z = ops.chunk(self.inp(self.emb(ids)), 2, axis=-1)
            x = ops.silu(self.conv(x.transpose(0, 2, 1))[..., :6]).transpose(0, 2, 1)
            d = ops.celu(x, self.alpha) + 1.5
            h = ops.cumsum(d * x, self.axis) / ops.cumsum(d, self.axis)
            y = h * ops.silu(z)
            return self.loss(self.out(y[:, -1]), t)

    class Gcn(nn.Cell):
        def __init__(self, f):
            super().__init__()
            r = np.random.RandomState(21)
            a = np.triu(r.rand(6, 6) > 0.5, 1)
            self.adj = ms.Tensor((a | a.T | np.eye(6, dtype=bool)).astype(np.float32))
            self.fc1, self.fc2, self.root, self.axis = nn.Dense(12, 9), nn.Dense(9, 12), ops.reciprocal if f == "root" else ops.rsqrt, 1 if f == "axis" else -1
            self.loss = nn.HuberLoss(delta=0.5 if f == "delta" else 1.0)

        def construct(self, x, t):
            d = self.root(self.adj.sum(-1))
            a = self.adj * d.expand_dims(0) * d.expand_dims(1)
            h = ops.relu(ops.matmul(a, self.fc1(x)))
            return self.loss(ops.log_softmax(ops.matmul(a, self.fc2(h)), self.axis), t * 3)

    class Tfive(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.emb, self.g = nn.Embedding(20, 16), ms.Parameter(ops.ones(16, ms.float32), name="g")
            self.bias = ms.Parameter(ops.ones((2, 6, 6), ms.float32), name="bias")
            self.q, self.k, self.v, self.o = (nn.Dense(16, 16, has_bias=False) for _ in range(4))
            self.wi, self.wo, self.eps = nn.Dense(16, 24, has_bias=False), nn.Dense(24, 16, has_bias=False), 1e-3 if f == "eps" else 1e-6
            self.turned, self.loss = f == "turned", nn.CrossEntropyLoss() if f == "ignore" else nn.CrossEntropyLoss(ignore_index=0)

        def construct(self, ids, t):
            x = self.emb(ids)
            h = x * ops.rsqrt(ops.pow(x, 2).mean(-1, True) + self.eps) * self.g
            q = self.q(h).reshape(3, 6, 2, 8).transpose(0, 2, 1, 3)
            k = self.k(h).reshape(3, 6, 2, 8).transpose(0, 2, 1, 3)
            v = self.v(h).reshape(3, 6, 2, 8).transpose(0, 2, 1, 3)
            s = ops.matmul(q, k.transpose(0, 1, 3, 2)) + (self.bias.transpose(0, 2, 1) if self.turned else self.bias)
            x = x + self.o(ops.matmul(ops.softmax(s, -1), v).transpose(0, 2, 1, 3).reshape(3, 6, 16))
            x = x + self.wo(ops.relu(self.wi(x)))
            y = ops.matmul(x, self.emb.embedding_table.T)
            return self.loss(y.reshape(18, 20), ids.reshape(18))

    class Contrast(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.a, self.b, self.temp = nn.Dense(12, 10), nn.Dense(10, 8), 0.5 if f == "temp" else 0.2
            self.norm = ops.L2Normalize(axis=-1) if f == "l2" else ops.L2Normalize(axis=-1, epsilon=1e-12)
            self.loss, self.to = nn.CrossEntropyLoss(label_smoothing=0.0 if f == "smooth" else 0.1), ms.Tensor(np.arange(5).astype(np.int32))

        def construct(self, x, t):
            a = self.norm(self.b(ops.relu(self.a(x))).mean(1) * 0.01)
            b = self.norm(self.b(ops.relu(self.a(t))).mean(1) * 0.01)
            return self.loss(ops.matmul(a, b.T) / self.temp, self.to)

    class Duel(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.fc, self.adv, self.val, self.axis = nn.Dense(12, 16), nn.Dense(16, 12), nn.Dense(16, 1), 1 if f == "mean" else -1
            self.shrink, self.loss = nn.HShrink(0.1 if f == "hard" else 0.25), nn.KLDivLoss(reduction="batchmean" if f == "batchmean" else "sum")

        def construct(self, x, t):
            h = self.shrink(ops.tanh(self.fc(x)))
            a = self.adv(h)
            q = self.val(h) + a - a.mean(self.axis, True)
            return self.loss(ops.log_softmax(q, -1), ops.softmax(t, -1))

    class Cosine(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.emb, self.ln = nn.Embedding(20, 10), nn.LayerNorm((10,)) if f == "ln" else nn.LayerNorm((10,), epsilon=1e-6)
            self.fc1, self.fc2, self.form, self.less = nn.Dense(10, 24), nn.Dense(24, 7), "none" if f == "gelu" else "tanh", 1 if f == "rows" else 0

        def construct(self, ids, t):
            x = self.ln(self.emb(ops.relu(ids - self.less)) * 0.01)
            x = self.fc2(ops.gelu(self.fc1(x), approximate=self.form)).mean(1)
            a, b = x, ops.one_hot(t, 7, 1.0, 0.0)
            return (1 - (a * b).sum(-1) / ops.sqrt((a * a).sum(-1) * (b * b).sum(-1))).mean()

    class Asgd(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.fc1, self.fc2, self.loss = nn.Dense(10, 14), nn.Dense(14, 7), nn.CrossEntropyLoss()

        def construct(self, x, t):
            return self.loss(self.fc2(ops.tanh(self.fc1(x))), t)

    class Nesterov(Asgd):
        pass

    class Groups(Asgd):
        pass

    return locals()


def mindspore_weights(name, fault, w):
    if name == "ssm":
        w = {k: v.reshape(*v.shape[:2], 1, -1) if v.ndim == 3 else v for k, v in w.items()}
    if name == "super":
        w["act.w"] = w["act.weight"] * 0 + 0.25 if fault == "slope" else w["act.weight"]
    return w


def mindspore_optimizer(name, params, f):
    from mindspore import nn
    from mindspore.experimental import optim
    params = list(params)
    if name == "asgd":
        return optim.ASGD(params, lr=1e-3 if f == "lr" else 1e-2, lambd=1e-1 if f == "lambd" else 1e-4)
    if name == "nesterov":
        return optim.SGD(params, lr=1e-2, momentum=0.9, nesterov=f != "off", weight_decay=0.1 if f == "decay" else 0.0)
    two = [{"params": [v for v in params if len(v.shape) > 1], "weight_decay": 0.1},
           {"params": [v for v in params if len(v.shape) < 2], "weight_decay": 0.1 if f == "all" else 0.0}]
    return optim.AdamW(two, lr=1e-2, eps=1e-4 if f == "eps" else 1e-8)
