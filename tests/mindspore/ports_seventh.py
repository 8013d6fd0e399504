"""A seventh set of ports for ports.py, small, made behind what the sixth taught and scored once: most faults are defaults of
MindSpore. The same conventions."""

PORTS = {
    "gluconv": ("seventh", "x", False, {"halves": ("Sigmoid Mul StridedSlice", ""), "hard": ("HSigmoid", ""), "tanh": ("GeLU", "tanh")}),
    "tagger": ("seventh", "ids", False, {"gates": ("LSTM lstm-LSTM", "order"), "bias": ("LSTM lstm-LSTM", "bias"), "logsoft": ("LogSoftmax", "dim")}),
    "vgg": ("seventh", "img", True, {"leaky": ("LeakyReLU Mul Maximum", "0.2"), "same": ("Conv2D", "pad"), "momentum": ("BatchNorm", "momentum")}),
    "auto": ("seventh", "x", False, {"elu": ("CeLU Elu", ""), "beta": ("SmoothL1Loss", "beta"), "reduction": ("SmoothL1Loss", "reduction"), "ddof": ("ReduceStd", "unbiased")}),
    "cross": ("seventh", "x", False, {"eps": ("LayerNorm", "eps"), "gelu": ("GeLU", "tanh"), "axis": ("Softmax", "dim")}),
}


def torch_nets():
    import torch
    from torch import nn
    import torch.nn.functional as F

    class gluconv(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(12, 20), nn.Linear(10, 12)

        def forward(self, x, t):
            p, q = self.a(x).chunk(2, dim=-1)
            return F.mse_loss(F.gelu(self.b(p * torch.sigmoid(q))), t)

    class tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.lstm, self.fc = nn.Embedding(20, 10), nn.LSTM(10, 8, batch_first=True), nn.Linear(8, 20)

        def forward(self, ids, t):
            y = F.log_softmax(self.fc(self.lstm(self.emb(ids))[0]), dim=-1)
            return F.nll_loss(y.reshape(18, 20), ids.reshape(18))

    class vgg(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.bn, self.conv2 = nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), nn.Conv2d(6, 8, 3, stride=2, padding=1)
            self.act, self.fc = nn.LeakyReLU(), nn.Linear(8 * 4, 7)

        def forward(self, x, t):
            x = F.max_pool2d(self.act(self.bn(self.conv1(x))), 2)
            return F.cross_entropy(self.fc(self.act(self.conv2(x)).flatten(1)), t)

    class auto(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(12, 7), nn.Linear(7, 12)

        def forward(self, x, t):
            h = F.elu(self.a(x))
            h = (h - h.mean(-1, keepdim=True)) / h.std(-1, keepdim=True)
            return F.smooth_l1_loss(self.b(h), x)

    class cross(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.v, self.o = (nn.Linear(12, 12) for _ in range(4))
            self.ln, self.up, self.down = nn.LayerNorm(12), nn.Linear(12, 20), nn.Linear(20, 12)

        def forward(self, x, t):
            a = F.softmax(torch.bmm(self.q(x), self.k(t).transpose(1, 2)) / 12 ** 0.5, dim=-1)
            x = self.ln((x + self.o(torch.bmm(a, self.v(t)))) * 0.01)
            return F.mse_loss(self.down(F.gelu(self.up(x))), t)

    return locals()


def torch_optimizer(name, p):
    return None


def mindspore_nets():
    from mindspore import nn, ops

    class Gluconv(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.a, self.b, self.other = nn.Dense(12, 20), nn.Dense(10, 12), f == "halves"
            self.gate, self.act, self.loss = ops.hardsigmoid if f == "hard" else ops.sigmoid, nn.GELU() if f == "tanh" else nn.GELU(False), nn.MSELoss()

        def construct(self, x, t):
            h = self.a(x)
            p, q = h[..., :10], h[..., 10:]
            if self.other:
                p, q = q, p
            return self.loss(self.act(self.b(p * self.gate(q))), t)

    class Tagger(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.emb, self.lstm, self.fc = nn.Embedding(20, 10), nn.LSTM(10, 8, batch_first=True), nn.Dense(8, 20)
            self.axis, self.loss = 1 if f == "logsoft" else -1, nn.NLLLoss()

        def construct(self, ids, t):
            y, _ = self.lstm(self.emb(ids))
            return self.loss(ops.log_softmax(self.fc(y), self.axis).reshape(18, 20), ids.reshape(18))

    class Vgg(nn.Cell):
        def __init__(self, f):
            super().__init__()
            pad = {} if f == "same" else {"pad_mode": "pad", "padding": 1}
            self.conv1, self.bn = nn.Conv2d(3, 6, 3, pad_mode="pad", padding=1, has_bias=True), nn.BatchNorm2d(6, momentum=0.1 if f == "momentum" else 0.9)
            self.conv2, self.act = nn.Conv2d(6, 8, 3, stride=2, has_bias=True, **pad), nn.LeakyReLU() if f == "leaky" else nn.LeakyReLU(0.01)
            self.pool, self.fc, self.loss = nn.MaxPool2d(2, 2), nn.Dense(8 * 4, 7), nn.CrossEntropyLoss()

        def construct(self, x, t):
            x = self.pool(self.act(self.bn(self.conv1(x))))
            return self.loss(self.fc(self.act(self.conv2(x)).reshape(4, -1)), t)

    class Auto(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.a, self.b, self.elu, self.ddof = nn.Dense(12, 7), nn.Dense(7, 12), nn.ELU(1.0), 0 if f == "ddof" else 1
            self.half = f == "elu"
            self.loss = nn.SmoothL1Loss() if f == "reduction" else nn.SmoothL1Loss(0.3 if f == "beta" else 1.0, "mean")

        def construct(self, x, t):
            h = ops.celu(self.a(x), 0.5) if self.half else self.elu(self.a(x))
            h = (h - h.mean(-1, True)) / ops.std(h, -1, self.ddof, True)
            return self.loss(self.b(h), x)

    class Cross(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.q, self.k, self.v, self.o = (nn.Dense(12, 12) for _ in range(4))
            self.ln, self.up, self.down = nn.LayerNorm((12,)) if f == "eps" else nn.LayerNorm((12,), epsilon=1e-5), nn.Dense(12, 20), nn.Dense(20, 12)
            self.act, self.axis, self.loss = nn.GELU() if f == "gelu" else nn.GELU(False), 1 if f == "axis" else 2, nn.MSELoss()

        def construct(self, x, t):
            a = ops.softmax(ops.bmm(self.q(x), self.k(t).transpose(0, 2, 1)) / 12 ** 0.5, self.axis)
            x = self.ln((x + self.o(ops.bmm(a, self.v(t)))) * 0.01)
            return self.loss(self.down(self.act(self.up(x))), t)

    return locals()


def mindspore_weights(name, fault, w):
    if fault == "bias" and name == "tagger":
        w["lstm.bias_hh_l0"] = w["lstm.bias_hh_l0"] * 0
    return w
