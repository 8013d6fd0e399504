"""A twelfth set of ports for ports.py, written before any code or verdict was looked at, recorded both ways and scored once before it
taught: relative places, pyramids of dilation, highways, bilinear pooling, two embeddings, residual forecasts, reversible norms, time
mixing, volume rendering, neighbours' means, negative samples, a generator, attention of channels, of words, of the library, counts, pools
of default stride, optimizers. The same conventions; most faults are a default of MindSpore's that is not torch's."""
import numpy as np

PORTS = {
    "transxl": ("twelfth", "ids", False, {
        "eps": ("LayerNorm", "eps"), "gelu": ("GeLU", "tanh"), "axis": ("Softmax", "dim"), "scale": ("Mul Div RealDiv Softmax BatchMatMul", ""),
        "bias": ("Add BatchMatMul", "")}),
    "aspp": ("twelfth", "img", True, {
        "momentum": ("BatchNorm", "momentum"), "bneps": ("BatchNorm", "eps"), "align": ("ResizeBilinearV2", "align_corners"), "same": ("Conv2D", "pad"),
        "rate": ("Conv2D", "dilation dilations")}),
    "highway": ("twelfth", "x", False, {
        "leaky": ("LeakyReLU Mul Maximum", "0.2"), "carry": ("Sub Mul", ""), "ddof": ("ReduceStd Pow", "unbiased divided correction"), "reduction": ("SmoothL1Loss", "reduction")}),
    "outer": ("twelfth", "img", False, {
        "same": ("Conv2D", "pad"), "l2": ("L2Normalize LpNorm Maximum Div RealDiv", "eps"), "root": ("Sqrt Mul", ""), "logsoft": ("LogSoftmax", "dim")}),
    "neumf": ("twelfth", "pairs", True, {
        "rows": ("Gather items-Embedding", ""), "order": ("Concat", ""), "reduction": ("BCEWithLogitsLoss loss-BCEWithLogitsLoss", "reduction"),
        "drop": ("Dropout", "keep_prob p 0.9")}),
    "nbeats": ("twelfth", "x", False, {
        "sign": ("Add Sub", ""), "gelu": ("GeLU", "tanh"), "reduction": ("SmoothL1Loss", "reduction")}),
    "revin": ("twelfth", "x", False, {
        "ddof": ("ReduceStd Pow ReduceMean ReduceSum Square", "unbiased divided correction"), "eps": ("Add Sqrt", "0.001"), "leaky": ("LeakyReLU Mul Maximum", "0.2"),
        "back": ("Mul Add Sub", "")}),
    "rwkv": ("twelfth", "ids", False, {
        "eps": ("LayerNorm", "eps"), "shift": ("Concat StridedSlice", ""), "square": ("Square Mul Pow cv-Dense", ""), "turned": ("rec-Dense rec.Dense", "transposed")}),
    "nerf": ("twelfth", "x", False, {
        "whole": ("StridedSlice Concat CumProd Mul Slice", ""), "relu": ("ReLU Softplus Exp Log1p", ""), "order": ("Concat", ""), "elu": ("Elu CeLU SeLU SeLU", "")}),
    "sage": ("twelfth", "x", False, {
        "l2": ("L2Normalize LpNorm Maximum Div RealDiv", "eps"), "axis": ("LogSoftmax", "dim"), "turned": ("own-Dense own.Dense", "transposed")}),
    "skipgram": ("twelfth", "ids", False, {
        "rows": ("Gather ctx-Embedding", ""), "mean": ("ReduceMean ReduceSum", ""), "sign": ("Neg log-LogSigmoid", "")}),
    "dcgan": ("twelfth", "x", True, {
        "momentum": ("BatchNorm", "momentum"), "leaky": ("LeakyReLU Mul Maximum", "0.01 0.2"), "same": ("Conv2D", "pad"), "bneps": ("BatchNorm", "eps")}),
    "cbam": ("twelfth", "img", False, {
        "order": ("Concat", ""), "gn": ("GroupNorm", "eps"), "max": ("ReduceMax ReduceMean ArgMaxWithValue Add", ""), "hard": ("HSigmoid Sigmoid", "")}),
    "wordatt": ("twelfth", "ids", False, {
        "gates": ("LSTM lstm-LSTM", "order"), "axis": ("Softmax", "dim"), "eps": ("LayerNorm", "eps"), "smooth": ("loss-Cross NLLLoss Mul ReduceSum Div Add", "label_smoothing")}),
    "libatt": ("twelfth", "x", False, {"eps": ("LayerNorm", "eps"), "gelu": ("GeLU", "tanh"), "parts": ("att-Multihead MatMul BiasAdd att-", "")}),
    "counts": ("twelfth", "x", False, {"log": ("Abs Log Exp Mul Sub", ""), "mean": ("ReduceMean", "dim"), "ddof": ("ReduceStd", "unbiased divided correction")}),
    "pools": ("twelfth", "img", True, {
        "avg": ("AvgPool pool2-AvgPool2d AvgPool2d", "stride"), "max": ("MaxPool MaxPoolWithArgmaxV2 pool1-MaxPool2d MaxPool2d", "stride"), "drop": ("Dropout", "keep_prob p 0.9"),
        "momentum": ("BatchNorm", "momentum")}),
    "adamconv": ("twelfth", "step", True, {"awd": ("opt-", "bias"), "eps": ("opt-", "eps"), "momentum": ("BatchNorm", "momentum")}),
    "lnstep": ("twelfth", "step", True, {
        "eps": ("opt-", "eps"), "lneps": ("LayerNorm", "eps"), "gelu": ("GeLU", "tanh"), "decay": ("opt-", "weight_decay")}),
    "globe": ("twelfth", "step", True, {"each": ("opt- LpNorm Div RealDiv Mul Select Sqrt Square ReduceSum", ""), "none": ("opt- Gradients", ""), "decay": ("opt-", "weight_decay weight")}),
    "ltwo": ("twelfth", "step", True, {"decoupled": ("opt-", ""), "eps": ("opt- Adam", "eps"), "scaled": ("opt- Gradients", "")}),
}


def data(kind):
    r = np.random.RandomState(29)
    if kind == "pairs":
        return [r.randint(0, 20, (8, 2)).astype(np.int32), r.randint(0, 2, 8).astype(np.float32)]
    return None


def near():
    r = np.random.RandomState(31)
    a = (r.rand(6, 6) < 0.5).astype(np.float32) + np.eye(6, dtype=np.float32)
    return np.minimum(a, 1.0)


def torch_nets():
    import torch
    from torch import nn
    import torch.nn.functional as F

    class transxl(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.ln1, self.ln2 = nn.Embedding(20, 16), nn.LayerNorm(16), nn.LayerNorm(16)
            self.q, self.k, self.v, self.r, self.o = (nn.Linear(16, 16, bias=False) for _ in range(5))
            self.u, self.w, self.pos = nn.Parameter(torch.randn(16)), nn.Parameter(torch.randn(16)), nn.Parameter(torch.randn(6, 16))
            self.up, self.act, self.down, self.head = nn.Linear(16, 28), nn.GELU(), nn.Linear(28, 16), nn.Linear(16, 7)

        def forward(self, ids, t):
            x = self.emb(ids) * 0.01
            h = self.ln1(x)
            q, k, v = self.q(h), self.k(h), self.v(h)
            ac = torch.bmm(q + self.u, k.transpose(1, 2))
            bd = torch.matmul(q + self.w, self.r(self.pos).transpose(0, 1))
            z = torch.cat([torch.zeros(3, 6, 1), bd], -1).reshape(3, 7, 6)[:, 1:]
            a = F.softmax((ac + z) * 0.25, dim=-1)
            x = x + self.o(torch.bmm(a, v)) * 0.02
            x = x + self.down(self.act(self.up(self.ln2(x))))
            return F.cross_entropy(self.head(x.mean(1)), t)

    class aspp(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem, self.bn = nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8)
            self.a, self.b, self.c = nn.Conv2d(8, 6, 1), nn.Conv2d(8, 6, 3, padding=2, dilation=2), nn.Conv2d(8, 6, 3, padding=3, dilation=3)
            self.join, self.bn2, self.head = nn.Conv2d(18, 8, 1, bias=False), nn.BatchNorm2d(8), nn.Conv2d(8, 3, 1)

        def forward(self, x, t):
            h = F.relu(self.bn(self.stem(x * 0.1)))
            h = torch.cat([self.a(h), self.b(h), self.c(h)], 1)
            h = F.relu(self.bn2(self.join(h)))
            return F.mse_loss(F.interpolate(self.head(h), size=(8, 8), mode="bilinear", align_corners=False), x)

    class highway(nn.Module):
        def __init__(self):
            super().__init__()
            self.h1, self.t1, self.h2, self.t2, self.out = (nn.Linear(12, 12) for _ in range(5))

        def forward(self, x, t):
            for h, g in ((self.h1, self.t1), (self.h2, self.t2)):
                c = torch.sigmoid(g(x) - 1.0)
                x = F.leaky_relu(h(x)) * c + x * (1.0 - c)
            x = (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True)
            return F.smooth_l1_loss(self.out(x), t)

    class outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.conv2, self.fc = nn.Conv2d(3, 6, 3, stride=2, padding=1), nn.Conv2d(6, 5, 3, padding=1), nn.Linear(30, 7)

        def forward(self, x, t):
            a = F.relu(self.conv1(x))
            b = self.conv2(a)
            y = torch.bmm(a.flatten(2), b.flatten(2).transpose(1, 2)) / 16.0
            y = (torch.sign(y) * torch.sqrt(torch.abs(y) + 1e-3)).flatten(1)
            y = F.normalize(y * 2e-3, dim=-1)
            return F.nll_loss(F.log_softmax(self.fc(y), dim=-1), t)

    class neumf(nn.Module):
        def __init__(self):
            super().__init__()
            self.users, self.items, self.users2, self.items2 = (nn.Embedding(20, 8) for _ in range(4))
            self.fc1, self.drop, self.fc2, self.out = nn.Linear(16, 12), nn.Dropout(0.0), nn.Linear(12, 6), nn.Linear(14, 1)

        def forward(self, ids, t):
            u, i = ids[:, 0], ids[:, 1]
            g = self.users(u) * self.items(i)
            m = F.relu(self.fc1(torch.cat([self.users2(u), self.items2(i)], -1)))
            m = F.relu(self.fc2(self.drop(m)))
            return F.binary_cross_entropy_with_logits(self.out(torch.cat([g, m], -1)).squeeze(-1), t)

    class nbeats(nn.Module):
        def __init__(self):
            super().__init__()
            self.a1, self.b1, self.f1 = nn.Linear(12, 20), nn.Linear(20, 12), nn.Linear(20, 12)
            self.a2, self.b2, self.f2 = nn.Linear(12, 20), nn.Linear(20, 12), nn.Linear(20, 12)
            self.act = nn.GELU()

        def forward(self, x, t):
            h = self.act(self.a1(x))
            x = x - self.b1(h)
            y = self.f1(h)
            h = self.act(self.a2(x))
            x = x - self.b2(h)
            y = y + self.f2(h)
            return F.smooth_l1_loss(y, t) + 0.1 * x.abs().mean()

    class revin(nn.Module):
        def __init__(self):
            super().__init__()
            self.w, self.b, self.time, self.mix = nn.Parameter(torch.randn(12)), nn.Parameter(torch.randn(12)), nn.Linear(6, 6), nn.Linear(12, 12)

        def forward(self, x, t):
            m = x.mean(1, keepdim=True)
            s = torch.sqrt(torch.var(x * 0.05, 1, keepdim=True) + 1e-5)
            y = (x - m) * 0.05 / s * self.w + self.b
            y = y + self.time(y.transpose(1, 2)).transpose(1, 2)
            y = y + self.mix(F.leaky_relu(y))
            y = (y - self.b) * s + m
            return F.mse_loss(y, t)

    class rwkv(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.ln1, self.ln2 = nn.Embedding(20, 12), nn.LayerNorm(12), nn.LayerNorm(12)
            self.k, self.v, self.rec, self.o = (nn.Linear(12, 12, bias=False) for _ in range(4))
            self.ck, self.cv, self.head, self.mix = nn.Linear(12, 24, bias=False), nn.Linear(24, 12, bias=False), nn.Linear(12, 7), nn.Parameter(torch.rand(12))

        def forward(self, ids, t):
            x = self.emb(ids) * 0.02
            h = self.ln1(x)
            last = torch.cat([torch.zeros(3, 1, 12), h[:, :-1]], 1)
            z = h * self.mix + last * (1.0 - self.mix)
            k, v, r = torch.exp(self.k(z)), self.v(z), torch.sigmoid(self.rec(z))
            y = torch.cumsum(k * v, 1) / torch.cumsum(k, 1)
            x = x + self.o(r * y)
            h = self.ln2(x)
            x = x + self.cv(torch.square(F.relu(self.ck(h))))
            return F.cross_entropy(self.head(x[:, -1]), t)

    class nerf(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.fc2, self.sigma, self.rgb = nn.Linear(24, 20), nn.Linear(20, 16), nn.Linear(16, 1), nn.Linear(16, 12)

        def forward(self, x, t):
            e = torch.cat([torch.sin(x * 2.0), torch.cos(x * 2.0)], -1)
            h = F.elu(self.fc2(F.relu(self.fc1(e))))
            a = 1.0 - torch.exp(F.softplus(self.sigma(h)) * -0.4)
            through = torch.cumprod(1.0 - a + 1e-6, 1)
            through = torch.cat([torch.ones(5, 1, 1), through[:, :-1]], 1)
            y = (a * through * torch.sigmoid(self.rgb(h))).sum(1)
            return F.mse_loss(y, t.mean(1))

    class sage(nn.Module):
        def __init__(self):
            super().__init__()
            self.own, self.near, self.out = nn.Linear(12, 12), nn.Linear(12, 12, bias=False), nn.Linear(12, 7)
            self.a = torch.from_numpy(near())

        def forward(self, x, t):
            n = torch.matmul(self.a, x) / self.a.sum(1, keepdim=True)
            h = F.relu(self.own(x) + self.near(n))
            h = F.normalize(h * 2e-3, dim=-1)
            y = F.log_softmax(self.out(h), dim=-1)
            return -(y * F.softmax(t[:, :, :7], -1)).sum(-1).mean()

    class skipgram(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.ctx = nn.Embedding(20, 10), nn.Embedding(20, 10)

        def forward(self, ids, t):
            c = self.emb(t).unsqueeze(2)
            s = torch.bmm(self.ctx(ids) * 0.5, c).squeeze(2)
            pos, neg = s[:, :2], s[:, 2:]
            return -(F.logsigmoid(pos).sum(1) + F.logsigmoid(-neg).sum(1)).mean()

    class dcgan(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.up1, self.bn1 = nn.Linear(72, 32), nn.ConvTranspose2d(8, 6, 4, stride=2, padding=1, bias=False), nn.BatchNorm2d(6)
            self.up2, self.down1, self.bn2, self.down2 = nn.ConvTranspose2d(6, 3, 2, stride=2), nn.Conv2d(3, 6, 3, stride=2, padding=1), nn.BatchNorm2d(6), nn.Conv2d(6, 1, 4)

        def forward(self, x, t):
            h = self.fc(x.reshape(5, 72)).reshape(5, 8, 2, 2)
            h = F.relu(self.bn1(self.up1(h)))
            h = torch.tanh(self.up2(h))
            h = F.leaky_relu(self.bn2(self.down1(h)), 0.01)
            return F.softplus(-self.down2(h)).mean()

    class cbam(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.gn, self.fc1, self.fc2 = nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.Linear(8, 4), nn.Linear(4, 8)
            self.sp, self.fc = nn.Conv2d(2, 1, 7, padding=3, bias=False), nn.Linear(8, 7)

        def forward(self, x, t):
            x = F.relu(self.gn(self.conv(x) * 0.02))
            a, m = x.mean((2, 3)), x.amax((2, 3))
            c = torch.sigmoid(self.fc2(F.relu(self.fc1(a))) + self.fc2(F.relu(self.fc1(m))))
            x = x * c.reshape(4, 8, 1, 1)
            s = torch.sigmoid(self.sp(torch.cat([x.mean(1, keepdim=True), x.amax(1, keepdim=True)], 1)))
            return F.cross_entropy(self.fc((x * s).mean((2, 3))), t)

    class wordatt(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.lstm, self.key, self.ctx = nn.Embedding(20, 8), nn.LSTM(8, 10, batch_first=True), nn.Linear(10, 10), nn.Linear(10, 1, bias=False)
            self.ln, self.fc = nn.LayerNorm(10), nn.Linear(10, 7)

        def forward(self, ids, t):
            y, _ = self.lstm(self.emb(ids))
            a = F.softmax(self.ctx(torch.tanh(self.key(y))), dim=1)
            return F.cross_entropy(self.fc(self.ln((a * y).sum(1) * 0.05)), t)

    class libatt(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln, self.att, self.ln2 = nn.LayerNorm(12), nn.MultiheadAttention(12, 3, batch_first=True), nn.LayerNorm(12)
            self.up, self.act, self.down = nn.Linear(12, 24), nn.GELU(), nn.Linear(24, 12)

        def forward(self, x, t):
            h = self.ln(x * 0.01)
            a, _ = self.att(h, h, h)
            x = x + a
            return F.mse_loss(x + self.down(self.act(self.up(self.ln2(x)))), t)

    class counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(12, 16), nn.Linear(16, 12)

        def forward(self, x, t):
            h = torch.tanh(self.a(x) * 0.5)
            h = (h - h.mean((1, 2), keepdim=True)) / (torch.std(h, -1, keepdim=True) + 0.1)
            y = self.b(h)
            return (torch.exp(y) - torch.square(t) * y).mean()

    class pools(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.bn, self.pool1 = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.MaxPool2d(2)
            self.conv2, self.pool2, self.drop, self.fc = nn.Conv2d(8, 8, 3, padding=1), nn.AvgPool2d(2), nn.Dropout(0.0), nn.Linear(8, 7)

        def forward(self, x, t):
            x = self.pool1(F.relu(self.bn(self.conv1(x))))
            x = self.pool2(F.elu(self.conv2(x)))
            return F.cross_entropy(self.fc(self.drop(x.mean((2, 3)))), t)

    class adamconv(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.bn, self.fc = nn.Conv2d(2, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.Linear(20, 7)

        def forward(self, x, t):
            h = F.relu(self.bn(self.conv(x.reshape(6, 2, 5, 1).expand(6, 2, 5, 3) * 1.0)))
            return F.cross_entropy(self.fc(h.mean(3).reshape(6, 20)), t)

    class lnstep(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.ln, self.act, self.fc2 = nn.Linear(10, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 7)

        def forward(self, x, t):
            return F.cross_entropy(self.fc2(self.act(self.ln(self.fc1(x) * 0.02))), t)

    class globe(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.fc2 = nn.Linear(10, 18), nn.Linear(18, 7)

        def forward(self, x, t):
            return F.cross_entropy(self.fc2(F.elu(self.fc1(x * 3.0))), t) * 4.0

    class ltwo(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.fc2, self.fc3 = nn.Linear(10, 12), nn.Linear(12, 12), nn.Linear(12, 7)

        def forward(self, x, t):
            return F.cross_entropy(self.fc3(torch.tanh(self.fc2(F.relu(self.fc1(x))))), t)

    return {k: v for k, v in locals().items() if k in PORTS}


def torch_optimizer(name, p):
    import torch
    p = list(p)
    if name == "adamconv":
        return torch.optim.AdamW(p, lr=1e-2, weight_decay=0.0)
    if name == "lnstep":
        return torch.optim.AdamW(p, lr=5e-3, weight_decay=0.1)
    if name == "globe":
        return torch.optim.SGD(p, lr=5e-2, momentum=0.9, weight_decay=1e-2)
    if name == "ltwo":
        return torch.optim.Adam(p, lr=2e-3, weight_decay=0.05)
    return None


def torch_clip(name, params):
    import torch
    if name == "globe":
        torch.nn.utils.clip_grad_norm_(params, 1.0)


def mindspore_nets():
    import mindspore as ms
    from mindspore import nn, ops

    def gelu(f):
        return nn.GELU() if f == "gelu" else nn.GELU(approximate=False)

    def norm(n, f, word="eps"):
        return nn.LayerNorm((n,)) if f == word else nn.LayerNorm((n,), epsilon=1e-5)

    def param(name, *shape):
        return ms.Parameter(ops.ones(shape, ms.float32), name=name)

    class Transxl(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.emb, self.ln1, self.ln2 = nn.Embedding(20, 16), norm(16, f), norm(16, f)
            self.q, self.k, self.v, self.r, self.o = (nn.Dense(16, 16, has_bias=False) for _ in range(5))
            self.u, self.w, self.pos = param("u", 16), param("w", 16), param("pos", 6, 16)
            self.up, self.act, self.down, self.head = nn.Dense(16, 28), gelu(f), nn.Dense(28, 16), nn.Dense(16, 7)
            self.zero, self.axis, self.scale = ms.Tensor(np.zeros((3, 6, 1), np.float32)), 1 if f == "axis" else -1, 0.5 if f == "scale" else 0.25
            self.other, self.loss = f == "bias", nn.CrossEntropyLoss()

        def construct(self, ids, t):
            x = self.emb(ids) * 0.01
            h = self.ln1(x)
            q, k, v = self.q(h), self.k(h), self.v(h)
            ac = ops.bmm(q + (self.w if self.other else self.u), k.transpose(0, 2, 1))
            bd = ops.matmul(q + self.w, self.r(self.pos).transpose(1, 0))
            z = ops.cat([self.zero, bd], -1).reshape(3, 7, 6)[:, 1:]
            a = ops.softmax((ac + z) * self.scale, axis=self.axis)
            x = x + self.o(ops.bmm(a, v)) * 0.02
            x = x + self.down(self.act(self.up(self.ln2(x))))
            return self.loss(self.head(x.mean(1)), t)

    class Aspp(nn.Cell):
        def __init__(self, f):
            super().__init__()
            m, e = 0.1 if f == "momentum" else 0.9, 1e-3 if f == "bneps" else 1e-5
            pad = {} if f == "same" else {"pad_mode": "pad", "padding": 1}
            self.stem, self.bn = nn.Conv2d(3, 8, 3, stride=2, has_bias=True, **pad), nn.BatchNorm2d(8, eps=e, momentum=m)
            d = 3 if f == "rate" else 2
            self.a, self.b = nn.Conv2d(8, 6, 1, has_bias=True), nn.Conv2d(8, 6, 3, pad_mode="pad", padding=d, dilation=d, has_bias=True)
            self.c = nn.Conv2d(8, 6, 3, pad_mode="pad", padding=3, dilation=3, has_bias=True)
            self.join, self.bn2, self.head = nn.Conv2d(18, 8, 1), nn.BatchNorm2d(8, momentum=m), nn.Conv2d(8, 3, 1, has_bias=True)
            self.align, self.loss = f == "align", nn.MSELoss()

        def construct(self, x, t):
            h = ops.relu(self.bn(self.stem(x * 0.1)))
            h = ops.cat([self.a(h), self.b(h), self.c(h)], 1)
            h = ops.relu(self.bn2(self.join(h)))
            return self.loss(ops.interpolate(self.head(h), size=(8, 8), mode="bilinear", align_corners=self.align), x)

    class Highway(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.h1, self.t1, self.h2, self.t2, self.out = (nn.Dense(12, 12) for _ in range(5))
            self.act, self.ddof, self.swap = nn.LeakyReLU() if f == "leaky" else nn.LeakyReLU(0.01), 0 if f == "ddof" else 1, f == "carry"
            self.loss = nn.SmoothL1Loss() if f == "reduction" else nn.SmoothL1Loss(reduction="mean")

        def layer(self, h, g, x):
            c = ops.sigmoid(g(x) - 1.0)
            if self.swap:
                return self.act(h(x)) * (1.0 - c) + x * c
            return self.act(h(x)) * c + x * (1.0 - c)

        def construct(self, x, t):
            x = self.layer(self.h1, self.t1, x)
            x = self.layer(self.h2, self.t2, x)
            x = (x - x.mean(-1, True)) / x.std(-1, self.ddof, True)
            return self.loss(self.out(x), t)

    class Outer(nn.Cell):
        def __init__(self, f):
            super().__init__()
            pad = {} if f == "same" else {"pad_mode": "pad", "padding": 1}
            self.conv1, self.conv2 = nn.Conv2d(3, 6, 3, stride=2, has_bias=True, **pad), nn.Conv2d(6, 5, 3, has_bias=True)
            self.fc, self.norm, self.plain = nn.Dense(30, 7), ops.L2Normalize(-1, 1e-4 if f == "l2" else 1e-24), f == "root"
            self.axis, self.loss = 0 if f == "logsoft" else -1, nn.NLLLoss()

        def construct(self, x, t):
            a = ops.relu(self.conv1(x))
            b = self.conv2(a)
            y = ops.bmm(a.reshape(4, 6, 16), b.reshape(4, 5, 16).transpose(0, 2, 1)) / 16.0
            if not self.plain:
                y = ops.sign(y) * ops.sqrt(ops.abs(y) + 1e-3)
            y = self.norm(y.reshape(4, 30) * 2e-3)
            return self.loss(ops.log_softmax(self.fc(y), axis=self.axis), t)

    class Neumf(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.users, self.items, self.users2, self.items2 = (nn.Embedding(20, 8) for _ in range(4))
            self.fc1, self.fc2, self.out = nn.Dense(16, 12), nn.Dense(12, 6), nn.Dense(14, 1)
            self.drop, self.other = nn.Dropout(0.1) if f == "drop" else nn.Dropout(p=0.0), f == "order"
            self.loss = nn.BCEWithLogitsLoss(reduction="sum" if f == "reduction" else "mean")

        def construct(self, ids, t):
            u, i = ids[:, 0], ids[:, 1]
            g = self.users(u) * self.items(i)
            m = ops.relu(self.fc1(ops.cat([self.items2(i), self.users2(u)] if self.other else [self.users2(u), self.items2(i)], -1)))
            m = ops.relu(self.fc2(self.drop(m)))
            return self.loss(self.out(ops.cat([g, m], -1)).squeeze(-1), t)

    class Nbeats(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.a1, self.b1, self.f1 = nn.Dense(12, 20), nn.Dense(20, 12), nn.Dense(20, 12)
            self.a2, self.b2, self.f2 = nn.Dense(12, 20), nn.Dense(20, 12), nn.Dense(20, 12)
            self.act, self.plus = gelu(f), f == "sign"
            self.loss = nn.SmoothL1Loss() if f == "reduction" else nn.SmoothL1Loss(reduction="mean")

        def construct(self, x, t):
            h = self.act(self.a1(x))
            x = x + self.b1(h) if self.plus else x - self.b1(h)
            y = self.f1(h)
            h = self.act(self.a2(x))
            x = x - self.b2(h)
            y = y + self.f2(h)
            return self.loss(y, t) + 0.1 * x.abs().mean()

    class Revin(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.w, self.b, self.time, self.mix = param("w", 12), param("b", 12), nn.Dense(6, 6), nn.Dense(12, 12)
            self.ddof, self.eps, self.act, self.other = 0 if f == "ddof" else 1, 1e-3 if f == "eps" else 1e-5, nn.LeakyReLU() if f == "leaky" else nn.LeakyReLU(0.01), f == "back"
            self.loss = nn.MSELoss()

        def construct(self, x, t):
            m = x.mean(1, True)
            s = ops.sqrt(ops.var(x * 0.05, 1, self.ddof, True) + self.eps)
            y = (x - m) * 0.05 / s * self.w + self.b
            y = y + self.time(y.transpose(0, 2, 1)).transpose(0, 2, 1)
            y = y + self.mix(self.act(y))
            y = y * s + m if self.other else (y - self.b) * s + m
            return self.loss(y, t)

    class Rwkv(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.emb, self.ln1, self.ln2 = nn.Embedding(20, 12), norm(12, f), norm(12, f)
            self.k, self.v, self.rec, self.o = (nn.Dense(12, 12, has_bias=False) for _ in range(4))
            self.ck, self.cv, self.head, self.mix = nn.Dense(12, 24, has_bias=False), nn.Dense(24, 12, has_bias=False), nn.Dense(12, 7), param("mix", 12)
            self.zero, self.ahead, self.one, self.loss = ms.Tensor(np.zeros((3, 1, 12), np.float32)), f == "shift", f == "square", nn.CrossEntropyLoss()

        def construct(self, ids, t):
            x = self.emb(ids) * 0.02
            h = self.ln1(x)
            last = ops.cat([h[:, 1:], self.zero], 1) if self.ahead else ops.cat([self.zero, h[:, :-1]], 1)
            z = h * self.mix + last * (1.0 - self.mix)
            k, v, r = ops.exp(self.k(z)), self.v(z), ops.sigmoid(self.rec(z))
            y = ops.cumsum(k * v, 1) / ops.cumsum(k, 1)
            x = x + self.o(r * y)
            h = ops.relu(self.ck(self.ln2(x)))
            if not self.one:
                h = ops.square(h)
            x = x + self.cv(h)
            return self.loss(self.head(x[:, -1]), t)

    class Nerf(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.fc1, self.fc2, self.sigma, self.rgb = nn.Dense(24, 20), nn.Dense(20, 16), nn.Dense(16, 1), nn.Dense(16, 12)
            self.whole, self.dens, self.other = f == "whole", ops.relu if f == "relu" else ops.softplus, f == "order"
            self.act, self.one, self.loss = ops.selu if f == "elu" else ops.elu, ms.Tensor(np.ones((5, 1, 1), np.float32)), nn.MSELoss()

        def construct(self, x, t):
            s, c = ops.sin(x * 2.0), ops.cos(x * 2.0)
            e = ops.cat([c, s] if self.other else [s, c], -1)
            h = self.act(self.fc2(ops.relu(self.fc1(e))))
            a = 1.0 - ops.exp(self.dens(self.sigma(h)) * -0.4)
            through = ops.cumprod(1.0 - a + 1e-6, 1)
            if not self.whole:
                through = ops.cat([self.one, through[:, :-1]], 1)
            y = (a * through * ops.sigmoid(self.rgb(h))).sum(1)
            return self.loss(y, t.mean(1))

    class Sage(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.own, self.near, self.out = nn.Dense(12, 12), nn.Dense(12, 12, has_bias=False), nn.Dense(12, 7)
            self.a, self.norm, self.axis = ms.Tensor(near()), ops.L2Normalize(-1, 1e-4 if f == "l2" else 1e-24), 1 if f == "axis" else -1

        def construct(self, x, t):
            n = ops.matmul(self.a, x) / self.a.sum(1, keepdims=True)
            h = ops.relu(self.own(x) + self.near(n))
            h = self.norm(h * 2e-3)
            y = ops.log_softmax(self.out(h), axis=self.axis)
            return -(y * ops.softmax(t[:, :, :7], axis=-1)).sum(-1).mean()

    class Skipgram(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.emb, self.ctx, self.log, self.mean, self.same = nn.Embedding(20, 10), nn.Embedding(20, 10), nn.LogSigmoid(), f == "mean", f == "sign"

        def construct(self, ids, t):
            c = self.emb(t).expand_dims(2)
            s = ops.bmm(self.ctx(ids) * 0.5, c).squeeze(2)
            pos, neg = s[:, :2], s[:, 2:]
            p, n = self.log(pos), self.log(neg if self.same else -neg)
            return -(p.mean(1) + n.mean(1)).mean() if self.mean else -(p.sum(1) + n.sum(1)).mean()

    class Dcgan(nn.Cell):
        def __init__(self, f):
            super().__init__()
            m, e = 0.1 if f == "momentum" else 0.9, 1e-3 if f == "bneps" else 1e-5
            pad = {} if f == "same" else {"pad_mode": "pad", "padding": 1}
            self.fc, self.up1, self.bn1 = nn.Dense(72, 32), nn.Conv2dTranspose(8, 6, 4, stride=2, pad_mode="pad", padding=1), nn.BatchNorm2d(6, eps=e, momentum=m)
            self.up2 = nn.Conv2dTranspose(6, 3, 2, stride=2, pad_mode="valid", has_bias=True)
            self.down1, self.bn2 = nn.Conv2d(3, 6, 3, stride=2, has_bias=True, **pad), nn.BatchNorm2d(6, momentum=m)
            self.down2, self.act = nn.Conv2d(6, 1, 4, pad_mode="valid", has_bias=True), nn.LeakyReLU() if f == "leaky" else nn.LeakyReLU(0.01)

        def construct(self, x, t):
            h = self.fc(x.reshape(5, 72)).reshape(5, 8, 2, 2)
            h = ops.relu(self.bn1(self.up1(h)))
            h = ops.tanh(self.up2(h))
            h = self.act(self.bn2(self.down1(h)))
            return ops.softplus(-self.down2(h)).mean()

    class Cbam(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.conv, self.gn = nn.Conv2d(3, 8, 3, has_bias=True), nn.GroupNorm(2, 8, eps=1e-3 if f == "gn" else 1e-5)
            self.fc1, self.fc2, self.sp, self.fc = nn.Dense(8, 4), nn.Dense(4, 8), nn.Conv2d(2, 1, 7), nn.Dense(8, 7)
            self.other, self.mean, self.gate, self.loss = f == "order", f == "max", ops.hardsigmoid if f == "hard" else ops.sigmoid, nn.CrossEntropyLoss()

        def construct(self, x, t):
            x = ops.relu(self.gn(self.conv(x) * 0.02))
            a, m = x.mean((2, 3)), x.mean((2, 3)) if self.mean else ops.amax(x, (2, 3))
            c = self.gate(self.fc2(ops.relu(self.fc1(a))) + self.fc2(ops.relu(self.fc1(m))))
            x = x * c.reshape(4, 8, 1, 1)
            a, m = x.mean(1, True), ops.amax(x, 1, keepdims=True)
            s = ops.sigmoid(self.sp(ops.cat([m, a] if self.other else [a, m], 1)))
            return self.loss(self.fc((x * s).mean((2, 3))), t)

    class Wordatt(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.emb, self.lstm, self.key, self.ctx = nn.Embedding(20, 8), nn.LSTM(8, 10, batch_first=True), nn.Dense(10, 10), nn.Dense(10, 1, has_bias=False)
            self.ln, self.fc, self.axis = norm(10, f), nn.Dense(10, 7), -1 if f == "axis" else 1
            self.loss = nn.CrossEntropyLoss(label_smoothing=0.1 if f == "smooth" else 0.0)

        def construct(self, ids, t):
            y, _ = self.lstm(self.emb(ids))
            a = ops.softmax(self.ctx(ops.tanh(self.key(y))), axis=self.axis)
            return self.loss(self.fc(self.ln((a * y).sum(1) * 0.05)), t)

    class Libatt(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.ln, self.att, self.ln2 = norm(12, f), nn.MultiheadAttention(12, 3, batch_first=True), nn.LayerNorm((12,), epsilon=1e-5)
            self.up, self.act, self.down, self.loss = nn.Dense(12, 24), gelu(f), nn.Dense(24, 12), nn.MSELoss()

        def construct(self, x, t):
            h = self.ln(x * 0.01)
            a, _ = self.att(h, h, h)
            x = x + a
            return self.loss(x + self.down(self.act(self.up(self.ln2(x)))), t)

    class Counts(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.a, self.b = nn.Dense(12, 16), nn.Dense(16, 12)
            self.axes, self.ddof, self.plain = 1 if f == "mean" else (1, 2), 0 if f == "ddof" else 1, f == "log"

        def construct(self, x, t):
            h = ops.tanh(self.a(x) * 0.5)
            h = (h - h.mean(self.axes, True)) / (ops.std(h, -1, self.ddof, True) + 0.1)
            y = self.b(h)
            if self.plain:
                y = ops.abs(y) + 1.0
                return (y - ops.square(t) * ops.log(y)).mean()
            return (ops.exp(y) - ops.square(t) * y).mean()

    class Pools(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.conv1, self.bn = nn.Conv2d(3, 8, 3, has_bias=True), nn.BatchNorm2d(8, momentum=0.1 if f == "momentum" else 0.9)
            self.pool1, self.pool2 = nn.MaxPool2d(2) if f == "max" else nn.MaxPool2d(2, 2), nn.AvgPool2d(2) if f == "avg" else nn.AvgPool2d(2, 2)
            self.conv2, self.fc = nn.Conv2d(8, 8, 3, has_bias=True), nn.Dense(8, 7)
            self.drop, self.loss = nn.Dropout(0.1) if f == "drop" else nn.Dropout(p=0.0), nn.CrossEntropyLoss()

        def construct(self, x, t):
            x = self.pool1(ops.relu(self.bn(self.conv1(x))))
            x = self.pool2(ops.elu(self.conv2(x)))
            return self.loss(self.fc(self.drop(x.mean((2, 3)))), t)

    class Adamconv(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.conv, self.bn, self.fc, self.loss = nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4, momentum=0.1 if f == "momentum" else 0.9), nn.Dense(20, 7), nn.CrossEntropyLoss()

        def construct(self, x, t):
            h = ops.relu(self.bn(self.conv(ops.broadcast_to(x.reshape(6, 2, 5, 1), (6, 2, 5, 3)) * 1.0)))
            return self.loss(self.fc(h.mean(3).reshape(6, 20)), t)

    class Lnstep(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.fc1, self.ln, self.act, self.fc2, self.loss = nn.Dense(10, 16), norm(16, f, "lneps"), gelu(f), nn.Dense(16, 7), nn.CrossEntropyLoss()

        def construct(self, x, t):
            return self.loss(self.fc2(self.act(self.ln(self.fc1(x) * 0.02))), t)

    class Globe(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.fc1, self.fc2, self.loss = nn.Dense(10, 18), nn.Dense(18, 7), nn.CrossEntropyLoss()

        def construct(self, x, t):
            return self.loss(self.fc2(ops.elu(self.fc1(x * 3.0))), t) * 4.0

    class Ltwo(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.fc1, self.fc2, self.fc3, self.loss = nn.Dense(10, 12), nn.Dense(12, 12), nn.Dense(12, 7), nn.CrossEntropyLoss()

        def construct(self, x, t):
            return self.loss(self.fc3(ops.tanh(self.fc2(ops.relu(self.fc1(x))))), t)

    return {k: v for k, v in locals().items() if k.lower() in PORTS}


def mindspore_weights(name, fault, w):
    if name == "libatt":
        if fault == "parts":
            q, k, v = np.split(w["att.in_proj_weight"], 3)
            w["att.in_proj_weight"] = np.concatenate([k, q, v])
    if fault == "turned":
        k = {"rwkv": "rec.weight", "sage": "own.weight"}[name]
        w[k] = w[k].T.copy()
    if fault == "rows":
        k = {"neumf": "items.weight", "skipgram": "ctx.weight"}[name]
        w[k] = np.roll(w[k], 1, 0)
    return w


def mindspore_clip(name, fault):
    from mindspore import ops
    if name == "ltwo" and fault == "scaled":
        each = ops.MultitypeFuncGraph("times")

        @each.register("Tensor")
        def _(g):
            return g * 128.0

        over = ops.HyperMap()
        return lambda g: over(each, g)
    if name != "globe" or fault == "none":
        return None
    if fault == "each":
        return lambda g: tuple(ops.clip_by_norm(v, 1.0) for v in g)
    return lambda g: ops.clip_by_global_norm(g, 1.0)


def mindspore_optimizer(name, params, fault):
    from mindspore import nn
    from mindspore.experimental import optim
    if name == "adamconv":
        if fault == "awd":
            return nn.AdamWeightDecay(params, 1e-2, eps=1e-8)
        return optim.AdamW(params, lr=1e-2, weight_decay=0.0, eps=1e-6 if fault == "eps" else 1e-8)
    if name == "lnstep":
        return optim.AdamW(params, lr=5e-3, weight_decay=0.01 if fault == "decay" else 0.1, eps=1e-4 if fault == "eps" else 1e-8)
    if name == "globe":
        return optim.SGD(params, lr=5e-2, momentum=0.9, weight_decay=0.0 if fault == "decay" else 1e-2)
    if fault == "decoupled":
        return optim.AdamW(params, lr=2e-3, weight_decay=0.05)
    return nn.Adam(params, 2e-3, eps=1e-4 if fault == "eps" else 1e-8, weight_decay=0.05)
