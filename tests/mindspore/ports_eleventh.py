"""An eleventh set of ports for ports.py, written before any code or verdict was looked at, recorded both ways and scored once before it
taught: a detector, spatial gates, a conformer, pointers, retention, radial bases, modulation, a segmenter, convolutions over text,
capsules, likelihoods, triplets, a shared layer, layers in fp16, optimizers. The same conventions."""
import numpy as np

PORTS = {
    "yolo": ("eleventh", "img", True, {
        "momentum": ("BatchNorm", "momentum"), "bneps": ("BatchNorm", "eps"), "reduction": ("BinaryCrossEntropy loss-BCELoss", "reduction"),
        "stride": ("MaxPool MaxPoolWithArgmaxV2 pool-MaxPool2d", "stride")}),
    "gmlp": ("eleventh", "x", False, {
        "gelu": ("GeLU", "tanh"), "eps": ("LayerNorm", "eps"), "halves": ("Split StridedSlice Mul LayerNorm", ""), "turned": ("sp-Dense sp.Dense", "transposed")}),
    "conformer": ("eleventh", "x", True, {
        "half": ("Mul", "1.0 1 0.5"), "glu": ("Split StridedSlice Mul Sigmoid", ""), "hswish": ("HSwish SiLU Sigmoid", ""), "momentum": ("BatchNorm", "momentum")}),
    "pointer": ("eleventh", "point", False, {
        "axis": ("LogSoftmax", "dim"), "sigmoid": ("Sigmoid Tanh", ""), "reduction": ("NLLLoss loss-NLLLoss", "reduction"), "turned": ("k2-Dense k2.Dense", "transposed")}),
    "retnet": ("eleventh", "ids", False, {
        "gamma": ("Mul", ""), "gn": ("GroupNorm", "eps"), "gate": ("Sigmoid SiLU Mul", ""), "scale": ("Mul", "0.25")}),
    "rbf": ("eleventh", "x", False, {
        "width": ("Mul", "-0.05 0.05"), "mean": ("ReduceMean ReduceSum", ""), "reduction": ("SmoothL1Loss", "reduction"), "root": ("Sqrt Mul", "")}),
    "film": ("eleventh", "x", False, {
        "swap": ("Split StridedSlice Mul Add", ""), "one": ("Mul Add", ""), "leaky": ("LeakyReLU Mul Maximum", "0.2"), "eps": ("LayerNorm", "eps")}),
    "segform": ("eleventh", "img", False, {
        "same": ("Conv2D", "pad"), "gelu": ("GeLU", "tanh"), "eps": ("LayerNorm", "eps"), "align": ("ResizeBilinearV2", "align_corners")}),
    "textcnn": ("eleventh", "ids", True, {
        "drop": ("Dropout", "keep_prob p 0.9"), "avg": ("ReduceMean ReduceMax ArgMaxWithValue", ""), "order": ("Concat", ""), "rows": ("Gather emb-Embedding", "")}),
    "capsule": ("eleventh", "x", False, {"axis": ("Softmax", "dim"), "ones": ("Add", "0.5"), "eps": ("Add Sqrt", "0.001")}),
    "gauss": ("eleventh", "x", False, {"full": ("Add", ""), "std": ("Log Div Maximum Square Sqrt", ""), "ddof": ("ReduceStd", "unbiased divided correction")}),
    "triplet": ("eleventh", "x", False, {"margin": ("Add Sub", "0.2"), "axis": ("L2Normalize Div Norm LpNorm", "dim"), "relu6": ("ReLU6 ReLU", "")}),
    "albert": ("eleventh", "ids", False, {
        "gelu": ("GeLU", "tanh"), "eps": ("LayerNorm", "eps"), "scale": ("Mul Div RealDiv Softmax BatchMatMul", "4"), "pool": ("Tanh MatMul BiasAdd Dense", "")}),
    "halves": ("eleventh", "x", False, {"axis": ("Softmax", "dim"), "leaky": ("LeakyReLU Mul Maximum", "0.2"), "scale": ("Mul", "0.25")}),
    "scaled": ("eleventh", "step", True, {"unscaled": ("opt- Mul Div RealDiv Gradients", ""), "decay": ("opt-", "weight_decay"), "lr": ("opt-", "lr")}),
    "layerwise": ("eleventh", "step", True, {"same": ("opt-", "lr"), "eps": ("opt-", "eps"), "beta": ("opt-", "betas beta2")}),
    "rmsmom": ("eleventh", "step", True, {"alpha": ("opt-", "alpha"), "eps": ("opt-", "eps"), "lr": ("opt-", "lr")}),
}


def data(kind):
    r = np.random.RandomState(17)
    if kind == "point":
        return [r.randint(0, 20, (3, 6)).astype(np.int32), r.randint(0, 6, 3).astype(np.int32)]
    return None


def torch_nets():
    import torch
    from torch import nn
    import torch.nn.functional as F

    class yolo(nn.Module):
        def __init__(self):
            super().__init__()
            self.c1, self.bn1 = nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8, eps=1e-3, momentum=0.03)
            self.c2, self.bn2 = nn.Conv2d(16, 8, 1, bias=False), nn.BatchNorm2d(8, eps=1e-3, momentum=0.03)
            self.c3, self.pool = nn.Conv2d(16, 3, 1), nn.MaxPool2d(2)

        def forward(self, x, t):
            a = F.silu(self.bn1(self.c1(x * 0.2)))
            b = F.silu(self.bn2(self.c2(torch.cat([a, F.max_pool2d(a, 3, 1, 1)], 1))))
            u = F.interpolate(self.pool(b), size=(8, 8), mode="nearest")
            return F.binary_cross_entropy(torch.sigmoid(self.c3(torch.cat([u, a], 1))), torch.sigmoid(x))

    class gmlp(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln, self.fc1, self.act, self.ln2 = nn.LayerNorm(12), nn.Linear(12, 24), nn.GELU(), nn.LayerNorm(12)
            self.sp, self.fc2 = nn.Linear(6, 6), nn.Linear(12, 12)

        def forward(self, x, t):
            u, v = self.act(self.fc1(self.ln(x * 0.02))).chunk(2, dim=-1)
            v = self.sp(self.ln2(v).transpose(1, 2)).transpose(1, 2)
            return F.mse_loss(x + self.fc2(u * v), t)

    class conformer(nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down, self.ln1, self.ln2 = nn.Linear(12, 24), nn.Linear(24, 12), nn.LayerNorm(12), nn.LayerNorm(12)
            self.pw1, self.dw, self.bn, self.pw2 = nn.Conv1d(12, 24, 1), nn.Conv1d(12, 12, 3, padding=1, groups=12), nn.BatchNorm1d(12), nn.Conv1d(12, 12, 1)

        def forward(self, x, t):
            x = x + 0.5 * self.down(F.silu(self.up(self.ln1(x))))
            h = F.glu(self.pw1(x.transpose(1, 2)), dim=1)
            h = self.pw2(F.silu(self.bn(self.dw(h))))
            return F.mse_loss(self.ln2(x + h.transpose(1, 2)), t)

    class pointer(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.q, self.k, self.k2, self.v = nn.Embedding(20, 10), nn.Linear(10, 14), nn.Linear(10, 14), nn.Linear(14, 14), nn.Linear(14, 1, bias=False)

        def forward(self, ids, t):
            x = self.emb(ids)
            e = self.v(torch.tanh(self.q(x.mean(1)).unsqueeze(1) + self.k2(F.relu(self.k(x))))).squeeze(-1)
            return F.nll_loss(F.log_softmax(e, dim=-1), t)

    class retnet(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb = nn.Embedding(20, 16)
            self.q, self.k, self.v, self.g, self.o = (nn.Linear(16, 16, bias=False) for _ in range(5))
            self.gn, self.head = nn.GroupNorm(2, 16), nn.Linear(16, 7)
            self.decay = torch.from_numpy(decay(0.9))

        def forward(self, ids, t):
            x = self.emb(ids) * 0.1
            q, k, v = (p(x).view(3, 6, 2, 8).transpose(1, 2) for p in (self.q, self.k, self.v))
            s = torch.matmul(q * 8 ** -0.5, k.transpose(2, 3)) * self.decay
            y = torch.matmul(s, v).transpose(1, 2).reshape(18, 16)
            y = self.gn(y * 5.0).reshape(3, 6, 16)
            x = x + self.o(F.silu(self.g(x)) * y)
            return F.cross_entropy(self.head(x[:, -1]), t)

    class rbf(nn.Module):
        def __init__(self):
            super().__init__()
            self.c, self.fc = nn.Parameter(torch.randn(10, 12)), nn.Linear(10, 12)

        def forward(self, x, t):
            d = (x.unsqueeze(2) - self.c).pow(2).sum(-1)
            return F.smooth_l1_loss(self.fc(torch.exp(d * -0.1)), t)

    class film(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.ln, self.cond, self.out = nn.Linear(12, 16), nn.LayerNorm(16), nn.Linear(12, 32), nn.Linear(16, 12)

        def forward(self, x, t):
            g, b = self.cond(t.mean(1, keepdim=True)).chunk(2, dim=-1)
            h = self.ln(self.a(x) * 0.02) * (1.0 + g) + b
            return F.l1_loss(self.out(F.leaky_relu(h)), t)

    class segform(nn.Module):
        def __init__(self):
            super().__init__()
            self.patch, self.red = nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.Conv2d(8, 8, 2, stride=2)
            self.ln1, self.ln2 = nn.LayerNorm(8, eps=1e-6), nn.LayerNorm(8, eps=1e-6)
            self.q, self.kv, self.o = nn.Linear(8, 8), nn.Linear(8, 16), nn.Linear(8, 8)
            self.up, self.dw, self.act, self.down, self.head = nn.Linear(8, 16), nn.Conv2d(16, 16, 3, padding=1, groups=16), nn.GELU(), nn.Linear(16, 8), nn.Linear(8, 3)

        def forward(self, x, t):
            x0 = x
            x = self.patch(x * 0.01).flatten(2).transpose(1, 2)
            h = self.ln1(x)
            r = self.red(h.transpose(1, 2).reshape(4, 8, 4, 4)).flatten(2).transpose(1, 2)
            q, (k, v) = self.q(h), self.kv(r).chunk(2, -1)
            x = x + self.o(torch.bmm(F.softmax(torch.bmm(q, k.transpose(1, 2)) * 8 ** -0.5, -1), v))
            h = self.up(self.ln2(x))
            h = self.dw(h.transpose(1, 2).reshape(4, 16, 4, 4)).flatten(2).transpose(1, 2)
            x = x + self.down(self.act(h))
            y = self.head(x).transpose(1, 2).reshape(4, 3, 4, 4)
            return F.mse_loss(F.interpolate(y, size=(8, 8), mode="bilinear", align_corners=False), x0)

    class textcnn(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.c2, self.c3, self.drop, self.fc = nn.Embedding(20, 12), nn.Conv1d(12, 8, 2), nn.Conv1d(12, 8, 3), nn.Dropout(0.0), nn.Linear(16, 7)

        def forward(self, ids, t):
            x = self.emb(ids).transpose(1, 2)
            h = torch.cat([F.relu(self.c2(x)).amax(2), F.relu(self.c3(x)).amax(2)], 1)
            return F.cross_entropy(self.fc(self.drop(h)), t)

    class capsule(nn.Module):
        def __init__(self):
            super().__init__()
            self.u, self.out = nn.Linear(12, 32), nn.Linear(32, 12)

        def forward(self, x, t):
            u = self.u(x).reshape(5, 6, 4, 8)
            a = u.sum(-1)
            c = F.softmax(a, dim=2).unsqueeze(-1)
            s = (c * u * 0.2).sum(1)
            n = s.pow(2).sum(-1, keepdim=True)
            v = n / (1.0 + n) * s / torch.sqrt(n + 1e-8)
            return F.mse_loss(self.out(v.reshape(5, 32)), t.mean(1))

    class gauss(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.mu, self.var = nn.Linear(12, 16), nn.Linear(16, 12), nn.Linear(16, 12)

        def forward(self, x, t):
            h = torch.sin(self.a(x))
            h = h / torch.std(h, -1, keepdim=True)
            v = torch.exp(self.var(h)).clamp(min=0.3)
            return (0.5 * (torch.log(v) + (t - self.mu(h)) ** 2 / v)).mean()

    class triplet(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(12, 16), nn.Linear(16, 8)

        def forward(self, x, t):
            z = F.normalize(self.b(F.relu(self.a(torch.cat([x, t], 1)) * 4.0)), dim=-1)
            p, n = z[:, :6], z[:, 6:]
            y = torch.bmm(p, n.transpose(1, 2)) - (p * p.flip(1)).sum(-1, keepdim=True)
            return F.softplus(y + 0.5).mean()

    class albert(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.map, self.ln0, self.ln1 = nn.Embedding(20, 8), nn.Linear(8, 16), nn.LayerNorm(16, eps=1e-12), nn.LayerNorm(16, eps=1e-12)
            self.qkv, self.o, self.up, self.act, self.down = nn.Linear(16, 48), nn.Linear(16, 16), nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16)
            self.pool, self.head = nn.Linear(16, 16), nn.Linear(16, 7)

        def forward(self, ids, t):
            x = self.ln0(self.map(self.emb(ids)) * 2e-3)
            for _ in range(3):
                q, k, v = self.qkv(x).chunk(3, dim=-1)
                x = x + self.o(torch.bmm(F.softmax(torch.bmm(q, k.transpose(1, 2)) / 8.0, dim=-1), v))
                x = self.ln1(x + self.down(self.act(self.up(x))))
            return F.cross_entropy(self.head(torch.tanh(self.pool(x[:, 0]))), t)

    class halves(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = nn.Linear(12, 16), nn.Linear(16, 16), nn.Linear(16, 12)

        def forward(self, x, t):
            h = F.leaky_relu(F.linear(x.half(), self.a.weight.half(), self.a.bias.half()))
            h = F.linear(h, self.b.weight.half(), self.b.bias.half()).float()
            h = F.softmax(h * 0.5, dim=-1)
            return F.mse_loss(self.c(h), t)

    class scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.fc2 = nn.Linear(10, 16), nn.Linear(16, 7)

        def forward(self, x, t):
            return F.cross_entropy(self.fc2(F.silu(self.fc1(x))), t) * 64.0

    class layerwise(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.fc2 = nn.Linear(10, 14), nn.Linear(14, 7)

        def forward(self, x, t):
            return F.cross_entropy(self.fc2(F.relu(self.fc1(x))), t)

    class rmsmom(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.fc2 = nn.Linear(10, 14), nn.Linear(14, 7)

        def forward(self, x, t):
            return F.cross_entropy(self.fc2(torch.sigmoid(self.fc1(x))), t)

    return {k: v for k, v in locals().items() if k in PORTS}


def decay(gamma):
    n = np.arange(6)[:, None] - np.arange(6)[None, :]
    return np.where(n >= 0, gamma ** np.maximum(n, 0), 0.0).astype(np.float32)


def torch_optimizer(name, p):
    import torch
    p = list(p)
    if name == "scaled":
        return torch.optim.SGD(p, lr=5e-2, momentum=0.9, weight_decay=0.1)
    if name == "layerwise":
        return torch.optim.AdamW([{"params": p[:2], "lr": 1e-2}, {"params": p[2:], "lr": 1e-3}], weight_decay=0.02)
    if name == "rmsmom":
        return torch.optim.RMSprop(p, lr=1e-3, momentum=0.9)
    return None


def torch_clip(name, params):
    if name == "scaled":
        for p in params:
            p.grad.mul_(1 / 64.0)


def mindspore_nets():
    import mindspore as ms
    from mindspore import nn, ops

    class Yolo(nn.Cell):
        def __init__(self, f):
            super().__init__()
            m, e = 0.03 if f == "momentum" else 0.97, 1e-5 if f == "bneps" else 1e-3
            self.c1, self.bn1 = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8, eps=e, momentum=m)
            self.c2, self.bn2 = nn.Conv2d(16, 8, 1), nn.BatchNorm2d(8, eps=1e-3, momentum=m)
            self.c3, self.pool = nn.Conv2d(16, 3, 1, has_bias=True), nn.MaxPool2d(2) if f == "stride" else nn.MaxPool2d(2, 2)
            self.loss = nn.BCELoss() if f == "reduction" else nn.BCELoss(reduction="mean")

        def construct(self, x, t):
            a = ops.silu(self.bn1(self.c1(x * 0.2)))
            b = ops.silu(self.bn2(self.c2(ops.cat([a, ops.max_pool2d(a, 3, 1, 1)], 1))))
            u = ops.interpolate(self.pool(b), size=(8, 8), mode="nearest")
            return self.loss(ops.sigmoid(self.c3(ops.cat([u, a], 1))), ops.sigmoid(x))

    class Gmlp(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.ln = nn.LayerNorm((12,)) if f == "eps" else nn.LayerNorm((12,), epsilon=1e-5)
            self.fc1, self.ln2, self.sp, self.fc2 = nn.Dense(12, 24), nn.LayerNorm((12,), epsilon=1e-5), nn.Dense(6, 6), nn.Dense(12, 12)
            self.act, self.other, self.loss = nn.GELU() if f == "gelu" else nn.GELU(approximate=False), f == "halves", nn.MSELoss()

        def construct(self, x, t):
            u, v = ops.chunk(self.act(self.fc1(self.ln(x * 0.02))), 2, -1)
            if self.other:
                u, v = v, u
            v = self.sp(self.ln2(v).transpose(0, 2, 1)).transpose(0, 2, 1)
            return self.loss(x + self.fc2(u * v), t)

    class Conformer(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.up, self.down = nn.Dense(12, 24), nn.Dense(24, 12)
            self.ln1, self.ln2 = nn.LayerNorm((12,), epsilon=1e-5), nn.LayerNorm((12,), epsilon=1e-5)
            self.pw1, self.pw2 = nn.Conv1d(12, 24, 1, has_bias=True), nn.Conv1d(12, 12, 1, has_bias=True)
            self.dw = nn.Conv1d(12, 12, 3, pad_mode="pad", padding=1, group=12, has_bias=True)
            self.bn = nn.BatchNorm1d(12, momentum=0.1 if f == "momentum" else 0.9)
            self.step, self.other, self.act, self.loss = 1.0 if f == "half" else 0.5, f == "glu", ops.hardswish if f == "hswish" else ops.silu, nn.MSELoss()

        def construct(self, x, t):
            x = x + self.step * self.down(ops.silu(self.up(self.ln1(x))))
            a, b = ops.chunk(self.pw1(x.transpose(0, 2, 1)), 2, 1)
            h = ops.sigmoid(a) * b if self.other else a * ops.sigmoid(b)
            h = self.pw2(self.act(self.bn(self.dw(h))))
            return self.loss(self.ln2(x + h.transpose(0, 2, 1)), t)

    class Pointer(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.emb, self.q, self.k, self.k2, self.v = nn.Embedding(20, 10), nn.Dense(10, 14), nn.Dense(10, 14), nn.Dense(14, 14), nn.Dense(14, 1, has_bias=False)
            self.axis, self.act, self.loss = 0 if f == "axis" else -1, ops.sigmoid if f == "sigmoid" else ops.tanh, nn.NLLLoss(reduction="sum" if f == "reduction" else "mean")

        def construct(self, ids, t):
            x = self.emb(ids)
            e = self.v(self.act(ops.expand_dims(self.q(x.mean(1)), 1) + self.k2(ops.relu(self.k(x))))).squeeze(-1)
            return self.loss(ops.log_softmax(e, axis=self.axis), t)

    class Retnet(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.emb = nn.Embedding(20, 16)
            self.q, self.k, self.v, self.g, self.o = (nn.Dense(16, 16, has_bias=False) for _ in range(5))
            self.gn, self.head = nn.GroupNorm(2, 16, eps=1e-3 if f == "gn" else 1e-5), nn.Dense(16, 7)
            self.decay, self.scale = ms.Tensor(decay(0.8 if f == "gamma" else 0.9)), 0.25 if f == "scale" else 8 ** -0.5
            self.act, self.loss = ops.sigmoid if f == "gate" else ops.silu, nn.CrossEntropyLoss()

        def heads(self, x):
            return x.reshape(3, 6, 2, 8).transpose(0, 2, 1, 3)

        def construct(self, ids, t):
            x = self.emb(ids) * 0.1
            q, k, v = self.heads(self.q(x)), self.heads(self.k(x)), self.heads(self.v(x))
            s = ops.matmul(q * self.scale, k.transpose(0, 1, 3, 2)) * self.decay
            y = ops.matmul(s, v).transpose(0, 2, 1, 3).reshape(18, 16, 1, 1)
            y = self.gn(y * 5.0).reshape(3, 6, 16)
            x = x + self.o(self.act(self.g(x)) * y)
            return self.loss(self.head(x[:, -1]), t)

    class Rbf(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.c, self.fc = ms.Parameter(ops.ones((10, 12), ms.float32), name="c"), nn.Dense(10, 12)
            self.width, self.mean, self.root = -0.05 if f == "width" else -0.1, f == "mean", f == "root"
            self.loss = nn.SmoothL1Loss() if f == "reduction" else nn.SmoothL1Loss(reduction="mean")

        def construct(self, x, t):
            d = ops.square(x.expand_dims(2) - self.c)
            d = d.mean(-1) if self.mean else d.sum(-1)
            if self.root:
                d = ops.sqrt(d)
            return self.loss(self.fc(ops.exp(d * self.width)), t)

    class Film(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.a, self.cond, self.out = nn.Dense(12, 16), nn.Dense(12, 32), nn.Dense(16, 12)
            self.ln = nn.LayerNorm((16,)) if f == "eps" else nn.LayerNorm((16,), epsilon=1e-5)
            self.act, self.loss = nn.LeakyReLU() if f == "leaky" else nn.LeakyReLU(0.01), nn.L1Loss()
            self.swap, self.one = f == "swap", 0.0 if f == "one" else 1.0

        def construct(self, x, t):
            g, b = ops.chunk(self.cond(t.mean(1, True)), 2, -1)
            if self.swap:
                g, b = b, g
            h = self.ln(self.a(x) * 0.02)
            h = h * (self.one + g) + b if self.one > 0 else h * g + b
            return self.loss(self.out(self.act(h)), t)

    class Segform(nn.Cell):
        def __init__(self, f):
            super().__init__()
            pad = {} if f == "same" else {"pad_mode": "pad", "padding": 1}
            e = {} if f == "eps" else {"epsilon": 1e-6}
            self.patch, self.red = nn.Conv2d(3, 8, 3, stride=2, has_bias=True, **pad), nn.Conv2d(8, 8, 2, stride=2, pad_mode="valid", has_bias=True)
            self.ln1, self.ln2 = nn.LayerNorm((8,), **e), nn.LayerNorm((8,), **e)
            self.q, self.kv, self.o = nn.Dense(8, 8), nn.Dense(8, 16), nn.Dense(8, 8)
            self.up, self.dw = nn.Dense(8, 16), nn.Conv2d(16, 16, 3, group=16, has_bias=True, pad_mode="pad", padding=1)
            self.act, self.down, self.head = nn.GELU() if f == "gelu" else nn.GELU(approximate=False), nn.Dense(16, 8), nn.Dense(8, 3)
            self.align, self.loss = f == "align", nn.MSELoss()

        def tokens(self, x):
            return x.reshape(4, x.shape[1], -1).transpose(0, 2, 1)

        def construct(self, x, t):
            x0 = x
            x = self.tokens(self.patch(x * 0.01))
            h = self.ln1(x)
            r = self.tokens(self.red(h.transpose(0, 2, 1).reshape(4, 8, 4, 4)))
            q = self.q(h)
            k, v = ops.chunk(self.kv(r), 2, -1)
            x = x + self.o(ops.bmm(ops.softmax(ops.bmm(q, k.transpose(0, 2, 1)) * 8 ** -0.5, -1), v))
            h = self.up(self.ln2(x))
            h = self.tokens(self.dw(h.transpose(0, 2, 1).reshape(4, 16, 4, 4)))
            x = x + self.down(self.act(h))
            y = self.head(x).transpose(0, 2, 1).reshape(4, 3, 4, 4)
            return self.loss(ops.interpolate(y, size=(8, 8), mode="bilinear", align_corners=self.align), x0)

    class Textcnn(nn.Cell):
        def __init__(self, f):
            super().__init__()
            none = {"pad_mode": "valid", "has_bias": True}
            self.emb, self.c2, self.c3, self.fc = nn.Embedding(20, 12), nn.Conv1d(12, 8, 2, **none), nn.Conv1d(12, 8, 3, **none), nn.Dense(16, 7)
            self.drop = nn.Dropout(0.1) if f == "drop" else nn.Dropout(p=0.0)
            self.avg, self.other, self.loss = f == "avg", f == "order", nn.CrossEntropyLoss()

        def top(self, x):
            return x.mean(2) if self.avg else ops.amax(x, 2)

        def construct(self, ids, t):
            x = self.emb(ids).transpose(0, 2, 1)
            a, b = self.top(ops.relu(self.c2(x))), self.top(ops.relu(self.c3(x)))
            h = ops.cat([b, a], 1) if self.other else ops.cat([a, b], 1)
            return self.loss(self.fc(self.drop(h)), t)

    class Capsule(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.u, self.out, self.loss = nn.Dense(12, 32), nn.Dense(32, 12), nn.MSELoss()
            self.axis, self.one, self.eps = 1 if f == "axis" else 2, 0.5 if f == "ones" else 1.0, 1e-3 if f == "eps" else 1e-8

        def construct(self, x, t):
            u = self.u(x).reshape(5, 6, 4, 8)
            c = ops.softmax(u.sum(-1), self.axis).expand_dims(-1)
            s = (c * u * 0.2).sum(1)
            n = ops.pow(s, 2).sum(-1, keepdims=True)
            v = n / (self.one + n) * s / ops.sqrt(n + self.eps)
            return self.loss(self.out(v.reshape(5, 32)), t.mean(1))

    class Gauss(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.a, self.mu, self.var = nn.Dense(12, 16), nn.Dense(16, 12), nn.Dense(16, 12)
            self.full, self.std, self.ddof = f == "full", f == "std", 0 if f == "ddof" else 1

        def construct(self, x, t):
            h = ops.sin(self.a(x))
            h = h / ops.std(h, -1, self.ddof, True)
            v = ops.clamp(ops.exp(self.var(h)), 0.3)
            if self.std:
                v = ops.square(v)
            y = ops.log(v) + ops.square(t - self.mu(h)) / v
            if self.full:
                y = y + 1.8378770664093453
            return (0.5 * y).mean()

    class Triplet(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.a, self.b = nn.Dense(12, 16), nn.Dense(16, 8)
            self.act, self.norm, self.margin = ops.relu6 if f == "relu6" else ops.relu, ops.L2Normalize(1 if f == "axis" else -1), 0.2 if f == "margin" else 0.5

        def construct(self, x, t):
            z = self.norm(self.b(self.act(self.a(ops.cat([x, t], 1)) * 4.0)))
            p, n = z[:, :6], z[:, 6:]
            y = ops.bmm(p, n.transpose(0, 2, 1)) - (p * ops.flip(p, (1,))).sum(-1, keepdims=True)
            return ops.softplus(y + self.margin).mean()

    class Albert(nn.Cell):
        def __init__(self, f):
            super().__init__()
            e = {} if f == "eps" else {"epsilon": 1e-12}
            self.emb, self.map, self.ln0, self.ln1 = nn.Embedding(20, 8), nn.Dense(8, 16), nn.LayerNorm((16,), **e), nn.LayerNorm((16,), epsilon=1e-12)
            self.qkv, self.o, self.up, self.down = nn.Dense(16, 48), nn.Dense(16, 16), nn.Dense(16, 32), nn.Dense(32, 16)
            self.act, self.pool, self.head = nn.GELU() if f == "gelu" else nn.GELU(approximate=False), nn.Dense(16, 16), nn.Dense(16, 7)
            self.scale, self.plain, self.loss = 4.0 if f == "scale" else 8.0, f == "pool", nn.CrossEntropyLoss()

        def construct(self, ids, t):
            x = self.ln0(self.map(self.emb(ids)) * 2e-3)
            for _ in range(3):
                q, k, v = ops.chunk(self.qkv(x), 3, -1)
                x = x + self.o(ops.bmm(ops.softmax(ops.bmm(q, k.transpose(0, 2, 1)) / self.scale, -1), v))
                x = self.ln1(x + self.down(self.act(self.up(x))))
            y = self.pool(x[:, 0])
            return self.loss(self.head(y if self.plain else ops.tanh(y)), t)

    class Halves(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.a, self.b, self.c, self.loss = nn.Dense(12, 16).to_float(ms.float16), nn.Dense(16, 16).to_float(ms.float16), nn.Dense(16, 12), nn.MSELoss()
            self.act, self.axis, self.scale = nn.LeakyReLU() if f == "leaky" else nn.LeakyReLU(0.01), 1 if f == "axis" else -1, 0.25 if f == "scale" else 0.5

        def construct(self, x, t):
            h = self.b(self.act(self.a(x))).astype(ms.float32)
            return self.loss(self.c(ops.softmax(h * self.scale, self.axis)), t)

    class Scaled(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.fc1, self.fc2, self.loss = nn.Dense(10, 16), nn.Dense(16, 7), nn.CrossEntropyLoss()

        def construct(self, x, t):
            return self.loss(self.fc2(ops.silu(self.fc1(x))), t) * 64.0

    class Layerwise(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.fc1, self.fc2, self.loss = nn.Dense(10, 14), nn.Dense(14, 7), nn.CrossEntropyLoss()

        def construct(self, x, t):
            return self.loss(self.fc2(ops.relu(self.fc1(x))), t)

    class Rmsmom(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.fc1, self.fc2, self.loss = nn.Dense(10, 14), nn.Dense(14, 7), nn.CrossEntropyLoss()

        def construct(self, x, t):
            return self.loss(self.fc2(ops.sigmoid(self.fc1(x))), t)

    return {k: v for k, v in locals().items() if k.lower() in PORTS}


def mindspore_weights(name, fault, w):
    for k in [*w]:
        if name in ("conformer", "textcnn") and w[k].ndim == 3:
            w[k] = w[k][:, :, None]
    if fault == "turned":
        k = {"gmlp": "sp.weight", "pointer": "k2.weight"}[name]
        w[k] = w[k].T.copy()
    if fault == "rows":
        w["emb.weight"] = np.roll(w["emb.weight"], 1, 0)
    return w


def mindspore_clip(name, fault):
    from mindspore import ops
    if name != "scaled" or fault == "unscaled":
        return None
    each = ops.MultitypeFuncGraph("each")

    @each.register("Tensor")
    def _(g):
        return g * (1 / 64.0)

    over = ops.HyperMap()
    return lambda g: over(each, g)


def mindspore_optimizer(name, params, fault):
    from mindspore import nn
    from mindspore.experimental import optim
    if name == "scaled":
        return optim.SGD(params, lr=1e-2 if fault == "lr" else 5e-2, momentum=0.9, weight_decay=0.01 if fault == "decay" else 0.1)
    if name == "layerwise":
        b = (0.9, 0.95) if fault == "beta" else (0.9, 0.999)
        return optim.AdamW([{"params": params[:2], "lr": 1e-2}, {"params": params[2:], "lr": 1e-2 if fault == "same" else 1e-3}],
                           betas=b, eps=1e-4 if fault == "eps" else 1e-8, weight_decay=0.02)
    return optim.RMSprop(params, lr=1e-2 if fault == "lr" else 1e-3, momentum=0.9, alpha=0.9 if fault == "alpha" else 0.99, eps=1e-4 if fault == "eps" else 1e-8)
