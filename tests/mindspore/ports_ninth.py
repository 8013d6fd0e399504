"""A ninth set of ports for ports.py, written before any code or verdict was looked at, recorded, and scored once before it taught:
inception, latents, Fourier features, codebooks, factorization machines, linear biases, an hourglass, two LSTM layers, weighted
classes, channels that are shuffled, and optimizers. The same conventions."""
import numpy as np

PORTS = {
    "incep": ("ninth", "img", False, {
        "count": ("AvgPool AvgPool3D", "count_include_pad"), "order": ("Concat", ""), "same": ("Conv2D", "pad"), "bneps": ("BatchNorm", "eps")}),
    "latent": ("ninth", "x", False, {
        "eps": ("LayerNorm", "eps"), "gelu": ("GeLU", "tanh"), "axis": ("Softmax", "dim"), "turned": ("k2-Dense k2.Dense", "transposed")}),
    "fourier": ("ninth", "x", False, {
        "order": ("Concat", ""), "quick": ("GeLU Sigmoid Div Erf Mul", ""), "pi": ("Mul", "3.14159"), "slope": ("LeakyReLU Mul Maximum", "0.2")}),
    "codes": ("ninth", "x", False, {"beta": ("Mul", "1"), "far": ("Argmax Argmin ArgMaxWithValue ArgMinWithValue", ""), "sum": ("ReduceSum ReduceMean", "")}),
    "factor": ("ninth", "ids", False, {
        "half": ("Mul", ""), "axis": ("ReduceSum", "dim"), "reduction": ("BCEWithLogitsLoss loss-BCEWithLogitsLoss", "reduction")}),
    "alibi": ("ninth", "ids", False, {"bias": ("Mul Add Sub", ""), "mask": ("MaskedFill Select Softmax", ""), "scale": ("Mul Div RealDiv Softmax BatchMatMul", "")}),
    "hourglass": ("ninth", "img", True, {
        "momentum": ("BatchNorm", "momentum"), "bilinear": ("ResizeBilinearV2 ResizeNearestNeighborV2 ResizeNearestNeighbor", ""),
        "skip": ("Add", ""), "beta": ("SmoothL1Loss", "beta")}),
    "stacked": ("ninth", "ids", False, {"gates": ("LSTM lstm-LSTM", "order"), "bias": ("LSTM lstm-LSTM", "bias"), "last": ("StridedSlice", "")}),
    "weighted": ("ninth", "x", False, {
        "weight": ("loss-Cross NLLLoss Mul Div", "weight"), "ddof": ("ReduceStd", "unbiased divided"), "prelu": ("PReLU PReLUKernel", "weight")}),
    "shuffle": ("ninth", "img", False, {"groups": ("Reshape Transpose", ""), "relu": ("ReLU ReLU6 HSwish", ""), "gn": ("GroupNorm", "eps")}),
    "decayed": ("ninth", "step", True, {"decoupled": ("opt-", ""), "decay": ("opt-", "weight_decay"), "beta": ("opt-", "betas beta2")}),
    "trained": ("ninth", "step", True, {"eps": ("opt-", "eps"), "lr": ("opt-", "lr"), "smooth": ("loss-Cross NLLLoss Mul ReduceSum Div Add", "label_smoothing")}),
}


def torch_nets():
    import torch
    from torch import nn
    import torch.nn.functional as F

    class incep(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b1, self.b2 = nn.Conv2d(3, 4, 1), nn.Conv2d(3, 4, 1), nn.Conv2d(4, 6, 3, padding=1)
            self.bn, self.down, self.fc = nn.BatchNorm2d(13), nn.Conv2d(13, 8, 3, stride=2, padding=1), nn.Linear(8 * 16, 7)
            self.bn.running_mean.uniform_(-0.2, 0.2)
            self.bn.running_var.uniform_(0.01, 0.1)

        def forward(self, x, t):
            b = self.b2(F.relu(self.b1(x)))
            x = torch.cat([self.a(x), b, F.avg_pool2d(x, 3, 1, 1)], 1)
            x = F.relu(self.down(F.relu(self.bn(x))))
            return F.cross_entropy(self.fc(x.flatten(1)), t)

    class latent(nn.Module):
        def __init__(self):
            super().__init__()
            self.lat, self.ln, self.q, self.k, self.v = nn.Parameter(torch.randn(1, 4, 16)), nn.LayerNorm(16), *(nn.Linear(n, 16) for n in (16, 12, 12))
            self.k2, self.up, self.down, self.out = nn.Linear(16, 16), nn.Linear(16, 24), nn.Linear(24, 16), nn.Linear(16, 12)

        def forward(self, x, t):
            q = self.q(self.ln(self.lat * 0.01)).expand(5, 4, 16)
            k = self.k2(torch.tanh(self.k(x)))
            h = torch.bmm(F.softmax(torch.bmm(q, k.transpose(1, 2)) / 4.0, dim=-1), self.v(x))
            h = h + self.down(F.gelu(self.up(h)))
            return F.mse_loss(self.out(h).mean(1), t.mean(1))

    class fourier(nn.Module):
        def __init__(self):
            super().__init__()
            self.b, self.fc1, self.fc2, self.fc3 = nn.Linear(12, 8, bias=False), nn.Linear(16, 20), nn.Linear(20, 20), nn.Linear(20, 12)

        def forward(self, x, t):
            p = 6.283185307179586 * self.b(x)
            h = F.gelu(self.fc1(torch.cat([torch.sin(p), torch.cos(p)], -1)))
            h = F.leaky_relu(self.fc2(h))
            return F.mse_loss(self.fc3(h), t)

    class codes(nn.Module):
        def __init__(self):
            super().__init__()
            self.enc, self.book, self.dec = nn.Linear(12, 8), nn.Parameter(torch.randn(10, 8)), nn.Linear(8, 12)

        def forward(self, x, t):
            z = self.enc(x).reshape(30, 8)
            d = z.pow(2).sum(1, keepdim=True) + self.book.pow(2).sum(1) - 2 * torch.matmul(z, self.book.t())
            e = self.book[d.argmin(1)]
            y = self.dec(z + (e - z).detach()).reshape(5, 6, 12)
            return F.mse_loss(y, x) + 0.25 * (e.detach() - z).pow(2).mean()

    class factor(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.lin, self.fc = nn.Embedding(20, 8), nn.Embedding(20, 7), nn.Linear(8, 7)

        def forward(self, ids, t):
            v = self.emb(ids)
            pairs = 0.5 * (v.sum(1).pow(2) - v.pow(2).sum(1))
            y = self.lin(ids).sum(1) + self.fc(pairs)
            return F.binary_cross_entropy_with_logits(y, F.one_hot(t, 7).float())

    class alibi(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.qkv, self.o, self.head = nn.Embedding(20, 16), nn.Linear(16, 48), nn.Linear(16, 16), nn.Linear(16, 7)
            i = torch.arange(6).float()
            self.dist, self.no = (i[None, :] - i[:, None]).abs(), torch.triu(torch.ones(6, 6, dtype=torch.bool), 1)
            self.slope = torch.tensor([0.25, 0.0625]).reshape(1, 2, 1, 1)

        def forward(self, ids, t):
            x = self.emb(ids)
            q, k, v = (p.reshape(3, 6, 2, 8).transpose(1, 2) for p in self.qkv(x).chunk(3, dim=-1))
            s = torch.matmul(q, k.transpose(-1, -2)) * 8 ** -0.5 - self.slope * self.dist
            a = F.softmax(s.masked_fill(self.no, float("-1e9")), dim=-1)
            x = x + self.o(torch.matmul(a, v).transpose(1, 2).reshape(3, 6, 16))
            return F.cross_entropy(self.head(x[:, -1]), t)

    class hourglass(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.bn1, self.conv2, self.bn2 = nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), nn.Conv2d(6, 6, 3, padding=1), nn.BatchNorm2d(6)
            self.out = nn.Conv2d(6, 3, 1)

        def forward(self, x, t):
            a = F.relu(self.bn1(self.conv1(x)))
            b = F.relu(self.bn2(self.conv2(F.max_pool2d(a, 2))))
            y = a + F.interpolate(b, scale_factor=2, mode="nearest")
            return F.smooth_l1_loss(self.out(y), x)

    class stacked(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.lstm, self.fc = nn.Embedding(20, 12), nn.LSTM(12, 10, num_layers=2, batch_first=True), nn.Linear(10, 7)

        def forward(self, ids, t):
            y, _ = self.lstm(self.emb(ids))
            return F.cross_entropy(self.fc(y[:, -1]), t)

    class weighted(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.act, self.b = nn.Linear(12, 14), nn.PReLU(), nn.Linear(14, 6)
            self.register_buffer("w", torch.tensor([1.0, 2.0, 0.5, 1.5, 1.0, 3.0]))

        def forward(self, x, t):
            h = self.act(self.a(x))
            h = (h - h.mean(-1, keepdim=True)) / torch.std(h, -1, keepdim=True)
            return F.cross_entropy(self.b(h).reshape(30, 6), t[..., :6].reshape(30, 6).argmax(1), weight=self.w)

    class shuffle(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.gn, self.conv2, self.fc = nn.Conv2d(3, 8, 1), nn.GroupNorm(2, 8), nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.Linear(8, 7)

        def forward(self, x, t):
            x = F.relu(self.gn(self.conv1(x) * 0.02))
            x = x.reshape(4, 2, 4, 8, 8).transpose(1, 2).reshape(4, 8, 8, 8)
            x = F.relu(self.conv2(x))
            return F.cross_entropy(self.fc(x.mean((2, 3))), t)

    class decayed(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.fc2 = nn.Linear(10, 14), nn.Linear(14, 7)

        def forward(self, x, t):
            return F.cross_entropy(self.fc2(F.silu(self.fc1(x))), t)

    class trained(decayed):
        pass

    return locals()


def torch_optimizer(name, p):
    import torch
    return {"decayed": lambda: torch.optim.Adam(p, lr=1e-2, weight_decay=0.1, betas=(0.9, 0.98)),
            "trained": lambda: torch.optim.AdamW(p, lr=2e-3)}.get(name, lambda: None)()


def mindspore_nets():
    import mindspore as ms
    from mindspore import nn, ops

    class Incep(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.a, self.b1 = nn.Conv2d(3, 4, 1, has_bias=True), nn.Conv2d(3, 4, 1, has_bias=True)
            self.b2 = nn.Conv2d(4, 6, 3, has_bias=True)  # its default pads as much on each side
            pad = {} if f == "same" else {"pad_mode": "pad", "padding": 1}
            self.bn, self.down, self.fc = nn.BatchNorm2d(13, eps=1e-3 if f == "bneps" else 1e-5), nn.Conv2d(13, 8, 3, stride=2, has_bias=True, **pad), nn.Dense(8 * 16, 7)
            self.pool = nn.AvgPool2d(3, 1, pad_mode="pad", padding=1, count_include_pad=f != "count")
            self.other, self.loss = f == "order", nn.CrossEntropyLoss()

        def construct(self, x, t):
            a, b = self.a(x), self.b2(ops.relu(self.b1(x)))
            x = ops.cat([b, a, self.pool(x)] if self.other else [a, b, self.pool(x)], 1)
            x = ops.relu(self.down(ops.relu(self.bn(x))))
            return self.loss(self.fc(x.reshape(4, -1)), t)

    class Latent(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.lat = ms.Parameter(ops.ones((1, 4, 16), ms.float32), name="lat")
            self.ln = nn.LayerNorm((16,)) if f == "eps" else nn.LayerNorm((16,), epsilon=1e-5)
            self.q, self.k, self.v, self.k2 = nn.Dense(16, 16), nn.Dense(12, 16), nn.Dense(12, 16), nn.Dense(16, 16)
            self.up, self.down, self.out = nn.Dense(16, 24), nn.Dense(24, 16), nn.Dense(16, 12)
            self.act, self.axis, self.loss = nn.GELU() if f == "gelu" else nn.GELU(approximate=False), 1 if f == "axis" else -1, nn.MSELoss()

        def construct(self, x, t):
            q = ops.broadcast_to(self.q(self.ln(self.lat * 0.01)), (5, 4, 16))
            k = self.k2(ops.tanh(self.k(x)))
            h = ops.bmm(ops.softmax(ops.bmm(q, k.transpose(0, 2, 1)) / 4.0, self.axis), self.v(x))
            h = h + self.down(self.act(self.up(h)))
            return self.loss(self.out(h).mean(1), t.mean(1))

    class Fourier(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.b, self.fc1, self.fc2, self.fc3 = nn.Dense(12, 8, has_bias=False), nn.Dense(16, 20), nn.Dense(20, 20), nn.Dense(20, 12)
            self.w, self.other, self.quick = 3.141592653589793 if f == "pi" else 6.283185307179586, f == "order", f == "quick"
            self.gelu, self.leaky, self.loss = nn.GELU(approximate=False), nn.LeakyReLU() if f == "slope" else nn.LeakyReLU(0.01), nn.MSELoss()

        def construct(self, x, t):
            p = self.w * self.b(x)
            h = self.fc1(ops.cat([ops.cos(p), ops.sin(p)] if self.other else [ops.sin(p), ops.cos(p)], -1))
            h = h * ops.sigmoid(1.702 * h) if self.quick else self.gelu(h)
            return self.loss(self.fc3(self.leaky(self.fc2(h))), t)

    class Codes(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.enc, self.book, self.dec = nn.Dense(12, 8), ms.Parameter(ops.ones((10, 8), ms.float32), name="book"), nn.Dense(8, 12)
            self.beta, self.far, self.sum, self.loss = 1.0 if f == "beta" else 0.25, f == "far", f == "sum", nn.MSELoss()

        def construct(self, x, t):
            z = self.enc(x).reshape(30, 8)
            d = ops.pow(z, 2).sum(1, keepdims=True) + ops.pow(self.book, 2).sum(1) - 2 * ops.matmul(z, self.book.T)
            e = ops.gather(self.book, d.argmax(1) if self.far else d.argmin(1), 0)
            y = self.dec(z + ops.stop_gradient(e - z)).reshape(5, 6, 12)
            c = ops.pow(ops.stop_gradient(e) - z, 2)
            return self.loss(y, x) + self.beta * (c.sum(1).mean() if self.sum else c.mean())

    class Factor(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.emb, self.lin, self.fc = nn.Embedding(20, 8), nn.Embedding(20, 7), nn.Dense(8, 7)
            self.half, self.axis = 1.0 if f == "half" else 0.5, 2 if f == "axis" else 1
            self.loss = nn.BCEWithLogitsLoss(reduction="sum" if f == "reduction" else "mean")

        def construct(self, ids, t):
            v = self.emb(ids)
            squares = ops.pow(v, 2)
            if self.axis == 2:
                squares = ops.tile(squares.sum(2).mean(1, True), (1, 8))
            else:
                squares = squares.sum(1)
            pairs = self.half * (ops.pow(v.sum(1), 2) - squares)
            return self.loss(self.lin(ids).sum(1) + self.fc(pairs), ops.one_hot(t, 7, 1.0, 0.0))

    class Alibi(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.emb, self.qkv, self.o, self.head = nn.Embedding(20, 16), nn.Dense(16, 48), nn.Dense(16, 16), nn.Dense(16, 7)
            i = np.arange(6, dtype=np.float32)
            self.dist, self.no = ms.Tensor(np.abs(i[None, :] - i[:, None])), ms.Tensor(np.triu(np.ones((6, 6), bool), 0 if f == "mask" else 1))
            self.slope = ms.Tensor(np.array([0.0625, 0.25] if f == "bias" else [0.25, 0.0625], np.float32).reshape(1, 2, 1, 1))
            self.scale, self.loss = 16 ** -0.5 if f == "scale" else 8 ** -0.5, nn.CrossEntropyLoss()

        def heads(self, p):
            return p.reshape(3, 6, 2, 8).transpose(0, 2, 1, 3)

        def construct(self, ids, t):
            x = self.emb(ids)
            q, k, v = ops.chunk(self.qkv(x), 3, axis=-1)
            q, k, v = self.heads(q), self.heads(k), self.heads(v)
            s = ops.matmul(q, k.transpose(0, 1, 3, 2)) * self.scale - self.slope * self.dist
            a = ops.softmax(ops.masked_fill(s, self.no, -1e9), -1)
            x = x + self.o(ops.matmul(a, v).transpose(0, 2, 1, 3).reshape(3, 6, 16))
            return self.loss(self.head(x[:, -1]), t)

    class Hourglass(nn.Cell):
        def __init__(self, f):
            super().__init__()
            m = 0.1 if f == "momentum" else 0.9
            self.conv1, self.bn1 = nn.Conv2d(3, 6, 3, has_bias=True), nn.BatchNorm2d(6, momentum=m)
            self.conv2, self.bn2 = nn.Conv2d(6, 6, 3, has_bias=True), nn.BatchNorm2d(6, momentum=m)
            self.pool, self.out, self.mode, self.noskip = nn.MaxPool2d(2, 2), nn.Conv2d(6, 3, 1, has_bias=True), f == "bilinear", f == "skip"
            self.loss = nn.SmoothL1Loss(0.5 if f == "beta" else 1.0, "mean")

        def construct(self, x, t):
            a = ops.relu(self.bn1(self.conv1(x)))
            b = ops.relu(self.bn2(self.conv2(self.pool(a))))
            b = ops.interpolate(b, size=(8, 8), mode="bilinear") if self.mode else ops.interpolate(b, size=(8, 8), mode="nearest")
            return self.loss(self.out(b if self.noskip else a + b), x)

    class Stacked(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.emb, self.lstm, self.fc, self.loss = nn.Embedding(20, 12), nn.LSTM(12, 10, num_layers=2, batch_first=True), nn.Dense(10, 7), nn.CrossEntropyLoss()
            self.last = 0 if f == "last" else -1

        def construct(self, ids, t):
            y, _ = self.lstm(self.emb(ids))
            return self.loss(self.fc(y[:, self.last]), t)

    class Weighted(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.a, self.act, self.b, self.ddof = nn.Dense(12, 14), nn.PReLU(), nn.Dense(14, 6), 0 if f == "ddof" else 1
            w = ms.Tensor(np.array([1.0, 2.0, 0.5, 1.5, 1.0, 3.0], np.float32))
            self.loss = nn.CrossEntropyLoss() if f == "weight" else nn.CrossEntropyLoss(weight=w)

        def construct(self, x, t):
            h = self.act(self.a(x))
            h = (h - h.mean(-1, True)) / ops.std(h, -1, self.ddof, True)
            return self.loss(self.b(h).reshape(30, 6), t[..., :6].reshape(30, 6).argmax(1).astype(ms.int32))

    class Shuffle(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.conv1, self.gn = nn.Conv2d(3, 8, 1, has_bias=True), nn.GroupNorm(2, 8, eps=1e-3 if f == "gn" else 1e-5)
            self.conv2, self.fc, self.loss = nn.Conv2d(8, 8, 3, group=8, has_bias=True), nn.Dense(8, 7), nn.CrossEntropyLoss()
            self.groups, self.act = (4, 2) if f == "groups" else (2, 4), ops.hardswish if f == "relu" else ops.relu

        def construct(self, x, t):
            x = ops.relu(self.gn(self.conv1(x) * 0.02))
            x = x.reshape(4, *self.groups, 8, 8).transpose(0, 2, 1, 3, 4).reshape(4, 8, 8, 8)
            x = self.act(self.conv2(x))
            return self.loss(self.fc(x.mean((2, 3))), t)

    class Decayed(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.fc1, self.fc2, self.loss = nn.Dense(10, 14), nn.Dense(14, 7), nn.CrossEntropyLoss()

        def construct(self, x, t):
            return self.loss(self.fc2(ops.silu(self.fc1(x))), t)

    class Trained(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.fc1, self.fc2, self.loss = nn.Dense(10, 14), nn.Dense(14, 7), nn.CrossEntropyLoss(label_smoothing=0.1 if f == "smooth" else 0.0)

        def construct(self, x, t):
            return self.loss(self.fc2(ops.silu(self.fc1(x))), t)

    return locals()


def mindspore_weights(name, fault, w):
    if name == "latent" and fault == "turned":
        w["k2.weight"] = w["k2.weight"].T.copy()
    if name == "stacked" and fault == "gates":  # of the upper layer alone
        for k in [k for k in w if k.startswith("lstm.") and k.endswith("_l1")]:
            i, g, c, o = np.split(w[k], 4)
            w[k] = np.concatenate((i, c, g, o))
    if name == "stacked" and fault == "bias":
        w["lstm.bias_hh_l1"] = w["lstm.bias_hh_l1"] * 0
    if name == "weighted":
        w["act.w"] = w["act.weight"] * 0 + 0.01 if fault == "prelu" else w["act.weight"]
    return w


def mindspore_optimizer(name, params, fault):
    from mindspore import nn
    from mindspore.experimental import optim
    if name == "decayed":
        if fault == "decoupled":
            return optim.AdamW(params, lr=1e-2, weight_decay=0.1, betas=(0.9, 0.98))
        return nn.Adam(params, learning_rate=1e-2, beta2=0.999 if fault == "beta" else 0.98, weight_decay=0.01 if fault == "decay" else 0.1)
    return optim.AdamW(params, lr=2e-2 if fault == "lr" else 2e-3, eps=1e-4 if fault == "eps" else 1e-8)
