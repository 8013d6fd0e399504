"""A fourth and a fifth set of ports for ports.py: networks of other families, and errors of converted weights, written before
any verdict on them was seen. The same conventions; `fourth` teaches, `fifth` is held back."""
import numpy as np

# The kernels are those that MindSpore makes of the line, as its files are named.
PORTS = {
    "unet": ("fourth", "img", False, {
        "order": ("Concat", ""), "smooth": ("Add", "1e-06"), "same": ("Conv2D", "pad"), "turned": ("Conv2DTranspose Conv2DBackpropInput", "transposed order")}),
    "vae": ("fourth", "x", False, {
        "half": ("Mul Exp", ""), "order": ("Split Mul Add Exp StridedSlice", ""), "reduction": ("BinaryCrossEntropy", "reduction"),
        "kl": ("ReduceMean ReduceSum", "")}),
    "linattn": ("fourth", "ids", False, {"relu": ("ReLU Elu", ""), "axis": ("CumSum CumsumExt", "dim"), "eps": ("Add", "0.01")}),
    "dcn": ("fourth", "ids", False, {
        "bneps": ("BatchNorm", "eps"), "stats": ("BatchNorm", "running"), "beta": ("BatchNorm", "bias"), "sum": ("BinaryCrossEntropy", "reduction")}),
    "metric": ("fourth", "x", False, {"margin": ("Add", "0.2"), "norm": ("LpNorm", "dim"), "p": ("LpNorm", "p")}),
    "encdec": ("fourth", "ids", False, {
        "scale": ("Mul BatchMatMul MatMul", ""), "gelu": ("Div Erf GeLU", ""), "ignore": ("loss-Cross Mul ReduceSum", "ignore_index"),
        "swap": ("q-Dense k-Dense q.Dense k.Dense", "")}),
    "nadam": ("fourth", "step", True, {"lr": ("opt-", "lr"), "eps": ("opt-", "eps"), "decay": ("opt-", "weight_decay")}),
    "adadelta": ("fourth", "step", True, {"rho": ("opt-", "rho"), "eps": ("opt-", "eps")}),
    "clipsgd": ("fourth", "step", True, {"value": ("opt- clip Clip Minimum Mul RealDiv Div", ""), "lr": ("opt-", "lr")}),
    "gat": ("fifth", "x", False, {"axis": ("Softmax", "dim"), "slope": ("LeakyReLU Mul Maximum", "0.2"), "mask": ("MaskedFill Select Softmax", "")}),
    "tcn": ("fifth", "x", False, {"same": ("Conv2D", "pad"), "swap": ("Tanh Sigmoid Mul", ""), "dilation": ("Conv2D", "dilation")}),
    "mobile": ("fifth", "img", False, {
        "relu": ("ReLU ReLU6", ""), "bneps": ("BatchNorm", "eps"), "same": ("Conv2D DepthwiseConv2dNative", "pad"), "se": ("Sigmoid HSigmoid", "")}),
    "rnn": ("fifth", "ids", False, {"relu": ("ReLU Tanh", ""), "bias": ("rnn-", "bias")}),
    "diffusion": ("fifth", "img", False, {
        "cossin": ("Concat", ""), "gn": ("GroupNorm", "eps"), "chunk": ("Split Add Mul StridedSlice", ""),
        "nearest": ("ResizeNearestNeighbor ResizeBilinearV2", "")}),
    "spectral": ("fifth", "x", False, {
        "ddof": ("ReduceStd", "unbiased"), "clamp": ("Maximum ClampScalar", "0.01"), "log": ("Log Log2 Log1p Div", ""), "batchmean": ("KLDiv KLDivLoss Div ReduceSum ReduceMean", "reduction")}),
    "adaml2": ("fifth", "step", True, {"adamw": ("opt-", ""), "decay": ("opt-", "weight_decay")}),
    "radam": ("fifth", "step", True, {"lr": ("opt-", "lr"), "decay": ("opt-", "weight_decay")}),
    "rprop": ("fifth", "step", True, {"lr": ("opt-", "lr"), "step": ("opt-", "step_sizes")}),
}


def torch_nets():
    import torch
    from torch import nn
    import torch.nn.functional as F

    class unet(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.conv2 = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 12, 3, stride=2, padding=1)
            self.up, self.conv3 = nn.ConvTranspose2d(12, 8, 2, stride=2), nn.Conv2d(16, 3, 3, padding=1)

        def forward(self, x, t):
            a = F.relu(self.conv1(x))
            b = self.up(F.relu(self.conv2(a)))
            p, q = torch.sigmoid(self.conv3(torch.cat([a, b], 1))), torch.sigmoid(x)
            return (1 - (2 * (p * q).sum((1, 2, 3)) + 1) / (p.sum((1, 2, 3)) + q.sum((1, 2, 3)) + 1)).mean()

    class vae(nn.Module):
        def __init__(self):
            super().__init__()
            self.enc, self.dec = nn.Linear(12, 16), nn.Linear(8, 12)

        def forward(self, x, t):
            mu, logvar = self.enc(x).chunk(2, dim=-1)
            y = torch.sigmoid(self.dec(mu + t[..., :8] * torch.exp(0.5 * logvar)))
            kl = (1 + logvar - mu * mu - torch.exp(logvar)).mean() * -0.5
            return F.binary_cross_entropy(y, torch.sigmoid(x)) + kl

    class linattn(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.q, self.k, self.v, self.fc = (
                nn.Embedding(20, 8), nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 7))

        def forward(self, ids, t):
            x = self.emb(ids)
            q, k, v = F.elu(self.q(x)) + 1, F.elu(self.k(x)) + 1, self.v(x)
            kv = torch.cumsum(k.unsqueeze(-1) * v.unsqueeze(-2), 1)
            y = torch.matmul(q.unsqueeze(-2), kv).squeeze(-2)
            y = y / ((q * torch.cumsum(k, 1)).sum(-1, keepdim=True) + 1e-6)
            return F.cross_entropy(self.fc(y.mean(1)), t)

    class dcn(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.bn, self.w1, self.w2, self.fc = (
                nn.Embedding(20, 4), nn.BatchNorm1d(24), nn.Linear(24, 24), nn.Linear(24, 24), nn.Linear(24, 7))
            self.bn.running_mean.uniform_(-0.5, 0.5)
            self.bn.running_var.uniform_(0.05, 0.5)

        def forward(self, ids, t):
            x = self.bn(self.emb(ids).reshape(3, 24))
            y = x * self.w1(x) + x
            y = x * self.w2(y) + y
            return F.binary_cross_entropy(torch.sigmoid(self.fc(y)), F.one_hot(t, 7).float())

    class metric(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(12, 10), nn.Linear(10, 8)

        def embed(self, x):
            x = self.b(torch.tanh(self.a(x))).mean(1)
            return x / torch.norm(x, dim=1, keepdim=True)

        def forward(self, x, t):
            a, p, n = self.embed(x), self.embed(t), self.embed(x * t)
            return F.relu(torch.norm(a - p, dim=1) - torch.norm(a - n, dim=1) + 1.0).mean()

    class encdec(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.q, self.k, self.v, self.o = (
                nn.Embedding(20, 16), *(nn.Linear(16, 16, bias=False) for _ in range(4)))
            self.up, self.down = nn.Linear(16, 24), nn.Linear(24, 16)

        def forward(self, ids, t):
            m = self.emb(ids)
            x = self.emb((ids * 3 + 1) % 20)
            a = F.softmax(torch.bmm(self.q(x), self.k(m).transpose(1, 2)), dim=-1)
            x = x + self.o(torch.bmm(a, self.v(m)))
            x = x + self.down(F.relu(self.up(x)))
            y = torch.matmul(x * 16 ** -0.5, self.emb.weight.t())
            return F.cross_entropy(y.reshape(18, 20), ids.reshape(18))

    class nadam(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.fc2 = nn.Linear(10, 18), nn.Linear(18, 7)

        def forward(self, x, t):
            return F.cross_entropy(self.fc2(F.elu(self.fc1(x))), t)

    class adadelta(nadam):
        pass

    class clipsgd(nadam):
        pass

    class adaml2(nadam):
        pass

    class radam(nadam):
        pass

    class rprop(nadam):
        pass

    class gat(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.a, self.b, self.out = nn.Linear(12, 10, bias=False), nn.Linear(10, 1), nn.Linear(10, 1), nn.Linear(10, 12)
            r = np.random.RandomState(11)
            self.no = torch.from_numpy((r.rand(6, 6) > 0.6) & ~np.eye(6, dtype=bool))

        def forward(self, x, t):
            h = self.fc(x)
            e = F.leaky_relu(self.a(h) + self.b(h).transpose(1, 2))
            w = F.softmax(e.masked_fill(self.no, -1e9), dim=-1)
            return F.mse_loss(self.out(F.elu(torch.bmm(w, h))), t)

    class tcn(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.down = nn.Conv1d(6, 16, 3, padding=2, dilation=2), nn.Conv1d(8, 8, 3, stride=2, padding=1)
            self.out = nn.Linear(6, 12)

        def forward(self, x, t):
            h = self.conv(x)
            h = torch.tanh(h[:, :8]) * torch.sigmoid(h[:, 8:])
            h = self.out(self.down(h))[:, :6]
            return F.mse_loss(h, t)

    class mobile(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem, self.bn1 = nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
            self.dw, self.bn2 = nn.Conv2d(8, 8, 3, stride=2, padding=1, groups=8, bias=False), nn.BatchNorm2d(8)
            self.se1, self.se2, self.fc = nn.Linear(8, 4), nn.Linear(4, 8), nn.Linear(8, 7)
            for b in (self.bn1, self.bn2):
                b.running_mean.uniform_(-0.2, 0.2)
                b.running_var.uniform_(0.01, 0.1)

        def forward(self, x, t):
            x = F.hardswish(self.bn1(self.stem(x)))
            x = F.relu6(self.bn2(self.dw(x)))
            s = F.hardsigmoid(self.se2(F.relu(self.se1(x.mean((2, 3))))))
            x = x * s.unsqueeze(-1).unsqueeze(-1)
            return F.cross_entropy(self.fc(x.mean((2, 3))), t)

    class rnn(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.rnn, self.fc = nn.Embedding(20, 12), nn.RNN(12, 10, batch_first=True), nn.Linear(10, 7)

        def forward(self, ids, t):
            y, _ = self.rnn(self.emb(ids))
            return F.cross_entropy(self.fc(y.mean(1)), t)

    class diffusion(nn.Module):
        def __init__(self):
            super().__init__()
            self.time, self.conv1, self.gn, self.conv2 = nn.Linear(8, 16), nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(4, 8), nn.Conv2d(8, 3, 3, padding=1)
            self.freq = torch.tensor([1.0, 0.3, 0.1, 0.03])

        def forward(self, x, t):
            a = t.float().unsqueeze(1) * self.freq
            shift, scale = self.time(F.silu(torch.cat([torch.sin(a), torch.cos(a)], 1))).chunk(2, dim=1)
            h = self.gn(self.conv1(F.avg_pool2d(x, 2)) * 0.02)
            h = F.silu(h * (1 + scale.reshape(4, 8, 1, 1)) + shift.reshape(4, 8, 1, 1))
            h = F.interpolate(self.conv2(h), size=(8, 8), mode="bilinear", align_corners=False)
            return F.mse_loss(h, x)

    class spectral(nn.Module):
        def __init__(self):
            super().__init__()
            self.mel, self.out = nn.Linear(12, 10, bias=False), nn.Linear(10, 12)

        def forward(self, x, t):
            h = torch.log(torch.clamp(self.mel(x).pow(2), min=1e-5))
            h = (h - h.mean(1, keepdim=True)) / torch.sqrt(h.var(1, keepdim=True) + 1e-5)
            return F.kl_div(F.log_softmax(self.out(h), dim=-1), F.softmax(t, dim=-1), reduction="mean")

    return locals()


def torch_optimizer(name, p):
    import torch
    o = torch.optim
    if PORTS[name][1] != "step":
        return None
    return {"nadam": lambda: o.NAdam(p, lr=1e-2), "adadelta": lambda: o.Adadelta(p), "clipsgd": lambda: o.SGD(p, lr=0.1),
            "adaml2": lambda: o.Adam(p, lr=1e-2, weight_decay=0.1), "radam": lambda: o.RAdam(p, lr=1e-2),
            "rprop": lambda: o.Rprop(p, lr=1e-2)}[name]()


def torch_clip(name, params):
    """What the training loop does between the gradients and the step."""
    import torch
    if name == "clipsgd":
        torch.nn.utils.clip_grad_norm_(params, 0.3)


def mindspore_nets():
    import mindspore as ms
    from mindspore import nn, ops

    class Unet(nn.Cell):
        def __init__(self, f):
            super().__init__()
            pad = {} if f == "same" else {"pad_mode": "pad", "padding": 1}
            self.conv1, self.conv2 = nn.Conv2d(3, 8, 3, pad_mode="pad", padding=1, has_bias=True), nn.Conv2d(8, 12, 3, stride=2, has_bias=True, **pad)
            self.up = nn.Conv2dTranspose(12, 8, 2, stride=2, pad_mode="valid", has_bias=True)
            self.conv3, self.other, self.one = nn.Conv2d(16, 3, 3, pad_mode="pad", padding=1, has_bias=True), f == "order", 1e-6 if f == "smooth" else 1.0

        def construct(self, x, t):
            a = ops.relu(self.conv1(x))
            b = self.up(ops.relu(self.conv2(a)))
            p, q = ops.sigmoid(self.conv3(ops.cat([b, a] if self.other else [a, b], 1))), ops.sigmoid(x)
            return (1 - (2 * (p * q).sum((1, 2, 3)) + self.one) / (p.sum((1, 2, 3)) + q.sum((1, 2, 3)) + self.one)).mean()

    class Vae(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.enc, self.dec = nn.Dense(12, 16), nn.Dense(8, 12)
            self.half, self.other, self.sum = 1.0 if f == "half" else 0.5, f == "order", f == "kl"
            self.bce = nn.BCELoss(reduction="sum" if f == "reduction" else "mean")

        def construct(self, x, t):
            mu, logvar = ops.chunk(self.enc(x), 2, axis=-1)
            if self.other:
                mu, logvar = logvar, mu
            y = ops.sigmoid(self.dec(mu + t[..., :8] * ops.exp(self.half * logvar)))
            kl = 1 + logvar - mu * mu - ops.exp(logvar)
            kl = (kl.sum() if self.sum else kl.mean()) * -0.5
            return self.bce(y, ops.sigmoid(x)) + kl

    class Linattn(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.emb, self.q, self.k, self.v, self.fc = nn.Embedding(20, 8), nn.Dense(8, 8), nn.Dense(8, 8), nn.Dense(8, 8), nn.Dense(8, 7)
            self.act, self.axis, self.eps, self.loss = ops.relu if f == "relu" else ops.elu, 0 if f == "axis" else 1, 1e-2 if f == "eps" else 1e-6, nn.CrossEntropyLoss()

        def construct(self, ids, t):
            x = self.emb(ids)
            q, k, v = self.act(self.q(x)) + 1, self.act(self.k(x)) + 1, self.v(x)
            kv = ops.cumsum(k.expand_dims(-1) * v.expand_dims(-2), self.axis)
            y = ops.matmul(q.expand_dims(-2), kv).squeeze(-2)
            y = y / ((q * ops.cumsum(k, 1)).sum(-1, keepdims=True) + self.eps)
            return self.loss(self.fc(y.mean(1)), t)

    class Dcn(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.emb, self.bn, self.w1, self.w2, self.fc = (
                nn.Embedding(20, 4), nn.BatchNorm1d(24, eps=1e-3 if f == "bneps" else 1e-5), nn.Dense(24, 24), nn.Dense(24, 24), nn.Dense(24, 7))
            self.bce = nn.BCELoss(reduction="sum" if f == "sum" else "mean")

        def construct(self, ids, t):
            x = self.bn(self.emb(ids).reshape(3, 24))
            y = x * self.w1(x) + x
            y = x * self.w2(y) + y
            return self.bce(ops.sigmoid(self.fc(y)), ops.one_hot(t, 7, 1.0, 0.0))

    class Metric(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.a, self.b = nn.Dense(12, 10), nn.Dense(10, 8)
            self.axis, self.ord, self.margin = 0 if f == "norm" else 1, 1 if f == "p" else 2, 0.2 if f == "margin" else 1.0

        def embed(self, x):
            x = self.b(ops.tanh(self.a(x))).mean(1)
            return x / ops.norm(x, 2, self.axis, True)

        def construct(self, x, t):
            a, p, n = self.embed(x), self.embed(t), self.embed(x * t)
            return ops.relu(ops.norm(a - p, self.ord, 1) - ops.norm(a - n, self.ord, 1) + self.margin).mean()

    class Encdec(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.emb, self.q, self.k, self.v, self.o = (nn.Embedding(20, 16), *(nn.Dense(16, 16, has_bias=False) for _ in range(4)))
            self.up, self.down, self.act = nn.Dense(16, 24), nn.Dense(24, 16), ops.gelu if f == "gelu" else ops.relu
            self.scale, self.loss = 1.0 if f == "scale" else 16 ** -0.5, nn.CrossEntropyLoss(ignore_index=3 if f == "ignore" else -100)

        def construct(self, ids, t):
            m = self.emb(ids)
            x = self.emb((ids * 3 + 1) % 20)
            a = ops.softmax(ops.bmm(self.q(x), self.k(m).transpose(0, 2, 1)), -1)
            x = x + self.o(ops.bmm(a, self.v(m)))
            x = x + self.down(self.act(self.up(x)))
            y = ops.matmul(x * self.scale, self.emb.embedding_table.T)
            return self.loss(y.reshape(18, 20), ids.reshape(18))

    class Nadam(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.fc1, self.fc2, self.loss = nn.Dense(10, 18), nn.Dense(18, 7), nn.CrossEntropyLoss()

        def construct(self, x, t):
            return self.loss(self.fc2(ops.elu(self.fc1(x))), t)

    class Adadelta(Nadam):
        pass

    class Clipsgd(Nadam):
        pass

    class Adaml2(Nadam):
        pass

    class Radam(Nadam):
        pass

    class Rprop(Nadam):
        pass

    class Gat(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.fc, self.a, self.b, self.out = nn.Dense(12, 10, has_bias=False), nn.Dense(10, 1), nn.Dense(10, 1), nn.Dense(10, 12)
            r = np.random.RandomState(11)
            no = (r.rand(6, 6) > 0.6) & ~np.eye(6, dtype=bool)
            self.no, self.act = ms.Tensor(no.T.copy() if f == "mask" else no), nn.LeakyReLU() if f == "slope" else nn.LeakyReLU(0.01)
            self.axis, self.loss = 1 if f == "axis" else -1, nn.MSELoss()

        def construct(self, x, t):
            h = self.fc(x)
            e = self.act(self.a(h) + self.b(h).transpose(0, 2, 1))
            w = ops.softmax(ops.masked_fill(e, self.no, -1e9), self.axis)
            return self.loss(self.out(ops.elu(ops.bmm(w, h))), t)

    class Tcn(nn.Cell):
        def __init__(self, f):
            super().__init__()
            d = 1 if f == "dilation" else 2
            self.conv = nn.Conv1d(6, 16, 3, pad_mode="pad", padding=d, dilation=d, has_bias=True)
            pad = {} if f == "same" else {"pad_mode": "pad", "padding": 1}
            self.down, self.out, self.loss = nn.Conv1d(8, 8, 3, stride=2, has_bias=True, **pad), nn.Dense(6, 12), nn.MSELoss()
            self.one, self.two = (ops.sigmoid, ops.tanh) if f == "swap" else (ops.tanh, ops.sigmoid)

        def construct(self, x, t):
            h = self.conv(x)
            h = self.one(h[:, :8]) * self.two(h[:, 8:])
            h = self.out(self.down(h))[:, :6]
            return self.loss(h, t)

    class Mobile(nn.Cell):
        def __init__(self, f):
            super().__init__()
            eps = 1e-3 if f == "bneps" else 1e-5
            pad = {} if f == "same" else {"pad_mode": "pad", "padding": 1}
            self.stem, self.bn1 = nn.Conv2d(3, 8, 3, pad_mode="pad", padding=1), nn.BatchNorm2d(8, eps=eps)
            self.dw, self.bn2 = nn.Conv2d(8, 8, 3, stride=2, group=8, **pad), nn.BatchNorm2d(8, eps=eps)
            self.se1, self.se2, self.fc, self.loss = nn.Dense(8, 4), nn.Dense(4, 8), nn.Dense(8, 7), nn.CrossEntropyLoss()
            self.act, self.gate = ops.relu if f == "relu" else ops.relu6, ops.sigmoid if f == "se" else ops.hardsigmoid

        def construct(self, x, t):
            x = ops.hardswish(self.bn1(self.stem(x)))
            x = self.act(self.bn2(self.dw(x)))
            s = self.gate(self.se2(ops.relu(self.se1(x.mean((2, 3))))))
            x = x * s.expand_dims(-1).expand_dims(-1)
            return self.loss(self.fc(x.mean((2, 3))), t)

    class Rnn(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.emb, self.rnn, self.fc, self.loss = (
                nn.Embedding(20, 12), nn.RNN(12, 10, batch_first=True, nonlinearity="relu" if f == "relu" else "tanh"), nn.Dense(10, 7), nn.CrossEntropyLoss())

        def construct(self, ids, t):
            y, _ = self.rnn(self.emb(ids))
            return self.loss(self.fc(y.mean(1)), t)

    class Diffusion(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.time, self.conv1 = nn.Dense(8, 16), nn.Conv2d(3, 8, 3, pad_mode="pad", padding=1, has_bias=True)
            self.gn, self.conv2 = nn.GroupNorm(4, 8, eps=1e-3 if f == "gn" else 1e-5), nn.Conv2d(8, 3, 3, pad_mode="pad", padding=1, has_bias=True)
            self.freq, self.other, self.swap = ms.Tensor(np.array([1.0, 0.3, 0.1, 0.03], np.float32)), f == "cossin", f == "chunk"
            self.pool, self.near, self.loss = nn.AvgPool2d(2, 2), f == "nearest", nn.MSELoss()

        def construct(self, x, t):
            a = t.astype(ms.float32).expand_dims(1) * self.freq
            h = ops.cat([ops.cos(a), ops.sin(a)] if self.other else [ops.sin(a), ops.cos(a)], 1)
            shift, scale = ops.chunk(self.time(ops.silu(h)), 2, axis=1)
            if self.swap:
                shift, scale = scale, shift
            h = self.gn(self.conv1(self.pool(x)) * 0.02)
            h = self.conv2(ops.silu(h * (1 + scale.reshape(4, 8, 1, 1)) + shift.reshape(4, 8, 1, 1)))
            if self.near:
                h = ops.interpolate(h, size=(8, 8), mode="nearest")
            else:
                h = ops.interpolate(h, size=(8, 8), mode="bilinear", align_corners=False)
            return self.loss(h, x)

    class Spectral(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.mel, self.out = nn.Dense(12, 10, has_bias=False), nn.Dense(10, 12)
            self.least, self.ddof, self.log = 1e-2 if f == "clamp" else 1e-5, 0 if f == "ddof" else 1, ops.log1p if f == "log" else ops.log
            self.loss = nn.KLDivLoss(reduction="batchmean" if f == "batchmean" else "mean")

        def construct(self, x, t):
            h = self.log(ops.clamp(ops.pow(self.mel(x), 2), self.least))
            h = (h - h.mean(1, True)) / ops.sqrt(ops.var(h, 1, self.ddof, True) + 1e-5)
            return self.loss(ops.log_softmax(self.out(h), -1), ops.softmax(t, -1))

    return locals()


def mindspore_weights(name, fault, w):
    """Of torch's state_dict w, in MindSpore's shapes; and errors of conversion."""
    if name == "tcn":
        w = {k: v.reshape(*v.shape[:2], 1, -1) if v.ndim == 3 else v for k, v in w.items()}
    if fault == "turned":
        w["up.weight"] = w["up.weight"].transpose(0, 1, 3, 2).copy()
    if fault == "stats":
        w["bn.running_mean"], w["bn.running_var"] = w["bn.running_var"], w["bn.running_var"] * 0 + 1
    if fault == "beta":
        w["bn.bias"] = w["bn.bias"] * 0
    if fault == "swap" and name == "encdec":
        w["q.weight"], w["k.weight"] = w["k.weight"], w["q.weight"]
    if fault == "bias" and name == "rnn":
        w["rnn.bias_hh_l0"] = w["rnn.bias_hh_l0"] * 0
    return w


def mindspore_optimizer(name, params, f):
    from mindspore import nn
    from mindspore.experimental import optim
    lr = 1e-3 if f == "lr" else 1e-2
    if name == "nadam":
        return optim.NAdam(params, lr=lr, eps=1e-3 if f == "eps" else 1e-8, weight_decay=0.1 if f == "decay" else 0.0)
    if name == "adadelta":
        return optim.Adadelta(params, rho=0.95 if f == "rho" else 0.9, eps=1e-5 if f == "eps" else 1e-6)
    if name == "clipsgd":
        return nn.SGD(params, 0.01 if f == "lr" else 0.1)
    if name == "adaml2":
        if f == "adamw":
            return optim.AdamW(params, lr=lr, weight_decay=0.1)
        return nn.Adam(params, lr, weight_decay=0.01 if f == "decay" else 0.1)
    if name == "radam":
        return optim.RAdam(params, lr=lr, weight_decay=0.1 if f == "decay" else 0.0)
    return optim.Rprop(params, lr=lr, step_sizes=(1e-6, 5e-3) if f == "step" else (1e-6, 50))


def mindspore_clip(name, f):
    """What stands between the gradients and the step, or None."""
    from mindspore import ops
    if name != "clipsgd":
        return None
    if f == "value":
        return lambda g: ops.clip_by_value(g, -0.3, 0.3)
    return lambda g: ops.clip_by_global_norm(g, 0.3)
