"""A tenth set of ports for ports.py, written before any code or verdict was looked at, recorded both ways and scored once before it
taught: an inverted residual with attention, the library's encoder layer, a GPT, recurrences, an MLP, upsampling, views in contrast, mixed
precision, a LLaMA, dilated convolutions, a mixture of densities, optimizers. The same conventions."""
import numpy as np

PORTS = {
    "effnet": ("tenth", "img", True, {
        "momentum": ("BatchNorm", "momentum"), "bneps": ("BatchNorm", "eps"), "same": ("Conv2D DepthwiseConv2dNative", "pad"), "hard": ("HSigmoid Sigmoid", "")}),
    "tlayer": ("tenth", "x", True, {"relu": ("ReLU GeLU Erf Div", ""), "eps": ("LayerNorm", "eps"), "first": ("MatMul BiasAdd Dense in_proj LayerNorm", "")}),
    "gpt": ("tenth", "text", False, {
        "erf": ("GeLU Erf Div Mul", "approximate erf"), "eps": ("LayerNorm", "eps"), "ignore": ("loss-Cross NLLLoss Mul ReduceSum MaskedFill Equal NotEqual", "ignore_index"),
        "scale": ("Mul Div RealDiv Softmax BatchMatMul", ""), "smooth": ("loss-Cross NLLLoss Mul ReduceSum Div Add", "label_smoothing")}),
    "bigru": ("tenth", "ids", False, {"parts": ("rnn-GRU gru-GRU GRUV2 DynamicGRUV2 CudnnGRU MatMul BiasAdd", ""), "eps": ("LayerNorm", "eps"), "max": ("ReduceMax ReduceMean ArgMaxWithValue", "")}),
    "seqlstm": ("tenth", "ids", False, {"parts": ("LSTM dec-LSTM", "order"), "state": ("LSTM dec-LSTM", ""), "bias": ("LSTM enc-LSTM", "bias")}),
    "mlpdrop": ("tenth", "x", True, {
        "drop": ("Dropout", "keep_prob p 0.9"), "momentum": ("BatchNorm", "momentum"), "leaky": ("LeakyReLU Mul Maximum", "0.2"),
        "reduction": ("SmoothL1Loss", "reduction")}),
    "unetup": ("tenth", "img", True, {
        "align": ("ResizeBilinearV2", "align_corners"), "order": ("Concat", ""),
        "gn": ("GroupNorm", "eps")}),
    "simclr": ("tenth", "x", False, {"temp": ("Div RealDiv Mul", "0.2"), "diag": ("MaskedFill Select Add", ""), "elu": ("Elu CeLU SeLU", ""), "sum": ("loss-Cross NLLLoss ReduceSum Div", "reduction")}),
    "amp": ("tenth", "x", False, {"gelu": ("GeLU", "tanh"), "eps": ("LayerNorm", "eps"), "axis": ("Softmax", "dim")}),
    "llama": ("tenth", "ids", False, {
        "rms": ("Rsqrt Add ReduceMean", "1e-05"), "swap": ("Mul SiLU Sigmoid", ""), "repeat": ("Tile RepeatInterleave BroadcastTo Reshape Concat Gather", ""),
        "gelu": ("GeLU SiLU Sigmoid Div Erf", "")}),
    "wave": ("tenth", "x", False, {"dilation": ("Conv2D", "dilation dilations"), "swap": ("Tanh Sigmoid Split StridedSlice", ""), "relu6": ("ReLU6 ReLU", "")}),
    "mdn": ("tenth", "x", False, {"axis": ("ReduceMax LogSoftmax ReduceSum", "dim"), "clamp": ("Maximum Minimum ClampTensor ClampScalar", "min 0.1"), "softplus": ("Softplus Exp Log1p ReLU Elu", "")}),
    "clipadamw": ("tenth", "step", True, {"value": ("opt- Minimum Maximum Mul Div RealDiv Select", ""), "eps": ("opt-", "eps"), "decay": ("opt-", "weight_decay")}),
    "warmadam": ("tenth", "step", True, {"awd": ("opt- Adam AdamWeightDecay AdamW", "bias"), "eps": ("opt- Adam", "eps"), "nesterov": ("opt- Adam", "")}),
}


def data(kind):
    r = np.random.RandomState(11)
    if kind == "text":
        t = r.randint(0, 20, (3, 6)).astype(np.int32)
        t[0, 1], t[2, 3] = 0, 0
        return [r.randint(0, 20, (3, 6)).astype(np.int32), t]
    return None


def torch_nets():
    import torch
    from torch import nn
    import torch.nn.functional as F

    class effnet(nn.Module):
        def __init__(self):
            super().__init__()
            self.expand, self.bn1 = nn.Conv2d(3, 12, 1, bias=False), nn.BatchNorm2d(12, eps=1e-3)
            self.dw, self.bn2 = nn.Conv2d(12, 12, 3, stride=2, padding=1, groups=12, bias=False), nn.BatchNorm2d(12, eps=1e-3)
            self.down, self.up = nn.Linear(12, 3), nn.Linear(3, 12)
            self.proj, self.bn3, self.fc = nn.Conv2d(12, 6, 1, bias=False), nn.BatchNorm2d(6, eps=1e-3), nn.Linear(6, 7)

        def forward(self, x, t):
            x = F.silu(self.bn1(self.expand(x * 0.2)))
            x = F.silu(self.bn2(self.dw(x)))
            s = torch.sigmoid(self.up(F.silu(self.down(x.mean((2, 3))))))
            x = self.bn3(self.proj(x * s[:, :, None, None]))
            return F.cross_entropy(self.fc(x.mean((2, 3))), t)

    class tlayer(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.TransformerEncoderLayer(12, 3, 24, dropout=0.0, activation="gelu", batch_first=True)
            self.head = nn.Linear(12, 12)

        def forward(self, x, t):
            return F.mse_loss(self.head(self.layer(x * 0.05)), t)

    class gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte, self.wpe, self.lnf = nn.Embedding(20, 16), nn.Embedding(6, 16), nn.LayerNorm(16)
            self.ln1, self.ln2 = (nn.ModuleList(nn.LayerNorm(16) for _ in range(2)) for _ in range(2))
            self.qkv, self.proj = nn.ModuleList(nn.Linear(16, 48) for _ in range(2)), nn.ModuleList(nn.Linear(16, 16) for _ in range(2))
            self.fc, self.out = nn.ModuleList(nn.Linear(16, 64) for _ in range(2)), nn.ModuleList(nn.Linear(64, 16) for _ in range(2))
            self.register_buffer("mask", torch.tril(torch.ones(6, 6)).bool(), persistent=False)

        def forward(self, ids, t):
            x = (self.wte(ids) + self.wpe(torch.arange(6))) * 0.05
            for i in range(2):
                q, k, v = (p.reshape(3, 6, 4, 4).transpose(1, 2) for p in self.qkv[i](self.ln1[i](x)).split(16, dim=-1))
                a = torch.matmul(q, k.transpose(2, 3)) / 2.0
                a = F.softmax(torch.where(self.mask, a, torch.tensor(-1e4)), dim=-1)
                x = x + self.proj[i](torch.matmul(a, v).transpose(1, 2).reshape(3, 6, 16))
                x = x + self.out[i](F.gelu(self.fc[i](self.ln2[i](x)), approximate="tanh"))
            y = torch.matmul(self.lnf(x), self.wte.weight.t())
            return F.cross_entropy(y.reshape(18, 20), t.reshape(18))

    class bigru(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.gru = nn.Embedding(20, 10), nn.GRU(10, 6, batch_first=True, bidirectional=True)
            self.ln, self.fc = nn.LayerNorm(12), nn.Linear(12, 7)

        def forward(self, ids, t):
            y, _ = self.gru(self.emb(ids))
            y = self.ln(y * 0.02)
            return F.cross_entropy(self.fc(y.mean(1)), t)

    class seqlstm(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.enc, self.dec, self.fc = nn.Embedding(20, 10), nn.LSTM(10, 8, batch_first=True), nn.LSTM(10, 8, batch_first=True), nn.Linear(8, 20)

        def forward(self, ids, t):
            x = self.emb(ids)
            _, s = self.enc(x)
            y, _ = self.dec(x[:, :5], s)
            return F.cross_entropy(self.fc(torch.relu(y)).reshape(15, 20), ids[:, 1:].reshape(15))

    class mlpdrop(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.bn, self.drop, self.b, self.act, self.c = nn.Linear(12, 20), nn.BatchNorm1d(20), nn.Dropout(0.0), nn.Linear(20, 16), nn.LeakyReLU(), nn.Linear(16, 12)

        def forward(self, x, t):
            x, t = x.reshape(30, 12), t.reshape(30, 12)
            x = self.drop(torch.relu(self.bn(self.a(x))))
            return F.smooth_l1_loss(self.c(self.act(self.b(x))), t)

    class unetup(nn.Module):
        def __init__(self):
            super().__init__()
            self.c1, self.n1, self.c2, self.n2 = nn.Conv2d(3, 6, 3, padding=1), nn.GroupNorm(3, 6), nn.Conv2d(6, 10, 3, padding=1), nn.GroupNorm(2, 10)
            self.up, self.c3, self.out = nn.ConvTranspose2d(10, 6, 4, stride=2, padding=1), nn.Conv2d(12, 6, 3, padding=1), nn.Conv2d(6, 3, 1)
            self.side = nn.Conv2d(10, 3, 1)

        def forward(self, x, t):
            a = F.relu(self.n1(self.c1(x * 0.02)))
            b = F.relu(self.n2(self.c2(F.max_pool2d(a, 2))))
            y = self.out(F.relu(self.c3(torch.cat([a, F.relu(self.up(b))], 1))))
            y = y + F.interpolate(self.side(b), size=(8, 8), mode="bilinear", align_corners=False)
            return F.binary_cross_entropy_with_logits(y, torch.sigmoid(x))

    class simclr(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(12, 16), nn.Linear(16, 8)
            self.register_buffer("eye", torch.eye(10).bool(), persistent=False)
            self.register_buffer("pair", (torch.arange(10) + 5) % 10, persistent=False)

        def forward(self, x, t):
            z = torch.cat([x.mean(1), t.mean(1)], 0)
            z = F.normalize(self.b(F.elu(self.a(z))), dim=1)
            s = torch.mm(z, z.t()) / 0.5
            return F.cross_entropy(s.masked_fill(self.eye, -1e9), self.pair)

    class amp(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.ln, self.b, self.c = nn.Linear(12, 16), nn.LayerNorm(16), nn.Linear(16, 24), nn.Linear(24, 12)

        def forward(self, x, t):
            h = F.linear(x.half() * 0.02, self.a.weight.half(), self.a.bias.half())
            h = self.ln(h.float()).half()
            h = F.gelu(F.linear(h, self.b.weight.half(), self.b.bias.half()))
            h = F.softmax(F.linear(h, self.c.weight.half(), self.c.bias.half()), dim=-1)
            return F.mse_loss(h.float(), t)

    class llama(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.g1, self.g2 = nn.Embedding(20, 16), nn.Parameter(torch.ones(16)), nn.Parameter(torch.ones(16))
            self.q, self.k, self.v, self.o = (nn.Linear(16, n, bias=False) for n in (16, 8, 8, 16))
            self.gate, self.up, self.down, self.head = (nn.Linear(*s, bias=False) for s in ((16, 20), (16, 20), (20, 16), (16, 7)))
            w = np.outer(np.arange(6.0), 100.0 ** (-np.arange(0, 4, 2) / 4))
            w = np.concatenate([w, w], 1).astype(np.float32)
            self.cos, self.sin = torch.from_numpy(np.cos(w)), torch.from_numpy(np.sin(w))
            self.mask = torch.triu(torch.full((6, 6), -1e9), 1)

        def turn(self, x):
            return x * self.cos + torch.cat([-x[..., 2:], x[..., :2]], -1) * self.sin

        def norm(self, x, g):
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * g

        def forward(self, ids, t):
            x = self.emb(ids) * 0.01
            h = self.norm(x, self.g1)
            q = self.turn(self.q(h).view(3, 6, 4, 4).transpose(1, 2))
            k = self.turn(self.k(h).view(3, 6, 2, 4).transpose(1, 2)).repeat_interleave(2, 1)
            v = self.v(h).view(3, 6, 2, 4).transpose(1, 2).repeat_interleave(2, 1)
            a = F.softmax(torch.matmul(q, k.transpose(2, 3)) * 0.5 + self.mask, dim=-1)
            x = x + self.o(torch.matmul(a, v).transpose(1, 2).reshape(3, 6, 16))
            h = self.norm(x, self.g2)
            x = x + self.down(F.silu(self.gate(h)) * self.up(h))
            return F.cross_entropy(self.head(x[:, -1]), t)

    class wave(nn.Module):
        def __init__(self):
            super().__init__()
            self.c1, self.c2, self.skip, self.out = nn.Conv1d(12, 16, 2), nn.Conv1d(8, 16, 2, dilation=2), nn.Conv1d(8, 10, 1), nn.Conv1d(10, 12, 1)

        def gated(self, h):
            a, b = h.chunk(2, 1)
            return torch.tanh(a) * torch.sigmoid(b)

        def forward(self, x, t):
            x, t = x.transpose(1, 2), t.transpose(1, 2)
            a = self.gated(self.c1(F.pad(x, (1, 0))))
            b = a + self.gated(self.c2(F.pad(a, (2, 0))))
            return F.mse_loss(self.out(F.relu(self.skip(b) * 20.0)), t)

    class mdn(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.pi, self.mu, self.sigma = nn.Linear(12, 16), nn.Linear(16, 4), nn.Linear(16, 4), nn.Linear(16, 4)

        def forward(self, x, t):
            h = torch.tanh(self.a(x))
            s = torch.clamp(F.softplus(self.sigma(h)), min=0.5)
            z = (t[..., :1] - self.mu(h)) / s
            p = F.log_softmax(self.pi(h), dim=-1) - torch.log(s) - 0.5 * z * z
            return -torch.logsumexp(p, dim=-1).mean()

    class clipadamw(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.ln, self.fc2 = nn.Linear(10, 12), nn.LayerNorm(12), nn.Linear(12, 7)

        def forward(self, x, t):
            return 5.0 * F.cross_entropy(self.fc2(F.gelu(self.ln(self.fc1(x)))), t)

    class warmadam(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.fc2 = nn.Linear(10, 12), nn.Linear(12, 7)

        def forward(self, x, t):
            return F.cross_entropy(self.fc2(torch.tanh(self.fc1(x))), t)

    return locals()


def torch_optimizer(name, p):
    import torch
    return {"clipadamw": lambda: torch.optim.AdamW(p, lr=1e-2, weight_decay=0.05),
            "warmadam": lambda: torch.optim.Adam(p, lr=3e-3)}.get(name, lambda: None)()


def torch_clip(name, params):
    import torch
    if name == "clipadamw":
        torch.nn.utils.clip_grad_norm_(params, 1.0)


def mindspore_nets():
    import mindspore as ms
    from mindspore import nn, ops

    class Effnet(nn.Cell):
        def __init__(self, f):
            super().__init__()
            m, e = 0.1 if f == "momentum" else 0.9, 1e-5 if f == "bneps" else 1e-3
            pad = {} if f == "same" else {"pad_mode": "pad", "padding": 1}
            self.expand, self.bn1 = nn.Conv2d(3, 12, 1), nn.BatchNorm2d(12, eps=e, momentum=m)
            self.dw, self.bn2 = nn.Conv2d(12, 12, 3, stride=2, group=12, **pad), nn.BatchNorm2d(12, eps=1e-3, momentum=m)
            self.down, self.up, self.act = nn.Dense(12, 3), nn.Dense(3, 12), nn.SiLU()
            self.proj, self.bn3, self.fc = nn.Conv2d(12, 6, 1), nn.BatchNorm2d(6, eps=1e-3, momentum=m), nn.Dense(6, 7)
            self.gate, self.loss = ops.hardsigmoid if f == "hard" else ops.sigmoid, nn.CrossEntropyLoss()

        def construct(self, x, t):
            x = self.act(self.bn1(self.expand(x * 0.2)))
            x = self.act(self.bn2(self.dw(x)))
            s = self.gate(self.up(self.act(self.down(x.mean((2, 3))))))
            x = self.bn3(self.proj(x * s.reshape(4, 12, 1, 1)))
            return self.loss(self.fc(x.mean((2, 3))), t)

    class Tlayer(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.layer = nn.TransformerEncoderLayer(12, 3, 24, dropout=0.0, activation="relu" if f == "relu" else "gelu", batch_first=True,
                                                    layer_norm_eps=1e-7 if f == "eps" else 1e-5, norm_first=f == "first")
            self.head, self.loss = nn.Dense(12, 12), nn.MSELoss()

        def construct(self, x, t):
            return self.loss(self.head(self.layer(x * 0.05)), t)

    class Gpt(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.wte, self.wpe = nn.Embedding(20, 16), nn.Embedding(6, 16)
            e = 1e-7 if f == "eps" else 1e-5
            self.lnf = nn.LayerNorm((16,), epsilon=1e-5)
            self.ln1, self.ln2 = (nn.CellList([nn.LayerNorm((16,), epsilon=e) for _ in range(2)]) for _ in range(2))
            self.qkv, self.proj = nn.CellList([nn.Dense(16, 48) for _ in range(2)]), nn.CellList([nn.Dense(16, 16) for _ in range(2)])
            self.fc, self.out = nn.CellList([nn.Dense(16, 64) for _ in range(2)]), nn.CellList([nn.Dense(64, 16) for _ in range(2)])
            self.act, self.scale = nn.GELU(approximate=f != "erf"), 4.0 if f == "scale" else 2.0
            self.mask, self.pos, self.low = ms.Tensor(np.tril(np.ones((6, 6), bool))), ms.Tensor(np.arange(6, dtype=np.int32)), ms.Tensor(-1e4, ms.float32)
            self.loss = nn.CrossEntropyLoss(ignore_index=0 if f == "ignore" else -100, label_smoothing=0.1 if f == "smooth" else 0.0)

        def heads(self, p):
            return p.reshape(3, 6, 4, 4).transpose(0, 2, 1, 3)

        def construct(self, ids, t):
            x = (self.wte(ids) + self.wpe(self.pos)) * 0.05
            for i in range(2):
                q, k, v = ops.split(self.qkv[i](self.ln1[i](x)), 16, -1)
                q, k, v = self.heads(q), self.heads(k), self.heads(v)
                a = ops.matmul(q, k.transpose(0, 1, 3, 2)) / self.scale
                a = ops.softmax(ops.where(self.mask, a, self.low), -1)
                x = x + self.proj[i](ops.matmul(a, v).transpose(0, 2, 1, 3).reshape(3, 6, 16))
                x = x + self.out[i](self.act(self.fc[i](self.ln2[i](x))))
            y = ops.matmul(self.lnf(x), self.wte.embedding_table.T)
            return self.loss(y.reshape(18, 20), t.reshape(18))

    class Bigru(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.emb, self.gru = nn.Embedding(20, 10), nn.GRU(10, 6, batch_first=True, bidirectional=True)
            self.ln, self.fc = nn.LayerNorm((12,)) if f == "eps" else nn.LayerNorm((12,), epsilon=1e-5), nn.Dense(12, 7)
            self.max, self.loss = f == "max", nn.CrossEntropyLoss()

        def construct(self, ids, t):
            y, _ = self.gru(self.emb(ids))
            y = self.ln(y * 0.02)
            y = ops.amax(y, 1) if self.max else y.mean(1)
            return self.loss(self.fc(y), t)

    class Seqlstm(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.emb, self.enc, self.dec, self.fc = nn.Embedding(20, 10), nn.LSTM(10, 8, batch_first=True), nn.LSTM(10, 8, batch_first=True), nn.Dense(8, 20)
            self.fresh, self.loss = f == "state", nn.CrossEntropyLoss()

        def construct(self, ids, t):
            x = self.emb(ids)
            _, s = self.enc(x)
            if self.fresh:
                y, _ = self.dec(x[:, :5])
            else:
                y, _ = self.dec(x[:, :5], s)
            return self.loss(self.fc(ops.relu(y)).reshape(15, 20), ids[:, 1:].reshape(15))

    class Mlpdrop(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.a, self.bn, self.b, self.c = nn.Dense(12, 20), nn.BatchNorm1d(20, momentum=0.1 if f == "momentum" else 0.9), nn.Dense(20, 16), nn.Dense(16, 12)
            self.drop = nn.Dropout(0.1) if f == "drop" else nn.Dropout(p=0.0)
            self.act, self.loss = nn.LeakyReLU() if f == "leaky" else nn.LeakyReLU(0.01), nn.SmoothL1Loss() if f == "reduction" else nn.SmoothL1Loss(reduction="mean")

        def construct(self, x, t):
            x, t = x.reshape(30, 12), t.reshape(30, 12)
            x = self.drop(ops.relu(self.bn(self.a(x))))
            return self.loss(self.c(self.act(self.b(x))), t)

    class Unetup(nn.Cell):
        def __init__(self, f):
            super().__init__()
            one = {"pad_mode": "pad", "padding": 1, "has_bias": True}
            self.c1, self.n1, self.c2 = nn.Conv2d(3, 6, 3, **one), nn.GroupNorm(3, 6, eps=1e-3 if f == "gn" else 1e-5), nn.Conv2d(6, 10, 3, **one)
            self.n2, self.c3, self.out, self.side = nn.GroupNorm(2, 10), nn.Conv2d(12, 6, 3, **one), nn.Conv2d(6, 3, 1, has_bias=True), nn.Conv2d(10, 3, 1, has_bias=True)
            self.up, self.pool, self.align, self.other = nn.Conv2dTranspose(10, 6, 4, stride=2, **one), nn.MaxPool2d(2, 2), f == "align", f == "order"
            self.loss = nn.BCEWithLogitsLoss()

        def construct(self, x, t):
            a = ops.relu(self.n1(self.c1(x * 0.02)))
            b = ops.relu(self.n2(self.c2(self.pool(a))))
            u = ops.relu(self.up(b))
            y = self.out(ops.relu(self.c3(ops.cat([u, a], 1) if self.other else ops.cat([a, u], 1))))
            y = y + ops.interpolate(self.side(b), size=(8, 8), mode="bilinear", align_corners=self.align)
            return self.loss(y, ops.sigmoid(x))

    class Simclr(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.a, self.b, self.act = nn.Dense(12, 16), nn.Dense(16, 8), ops.selu if f == "elu" else ops.elu
            eye = np.zeros((10, 10), bool) if f == "diag" else np.eye(10, dtype=bool)
            self.eye, self.pair, self.temp = ms.Tensor(eye), ms.Tensor(((np.arange(10) + 5) % 10).astype(np.int32)), 0.2 if f == "temp" else 0.5
            self.norm, self.loss = ops.L2Normalize(1), nn.CrossEntropyLoss(reduction="sum" if f == "sum" else "mean")

        def construct(self, x, t):
            z = ops.cat([x.mean(1), t.mean(1)], 0)
            z = self.norm(self.b(self.act(self.a(z))))
            s = ops.matmul(z, z.T) / self.temp
            return self.loss(ops.masked_fill(s, self.eye, -1e9), self.pair)

    class Halved(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.a, self.b, self.c = nn.Dense(12, 16), nn.Dense(16, 24), nn.Dense(24, 12)
            self.ln = nn.LayerNorm((16,)) if f == "eps" else nn.LayerNorm((16,), epsilon=1e-5)
            self.act, self.axis = nn.GELU() if f == "gelu" else nn.GELU(approximate=False), 1 if f == "axis" else -1

        def construct(self, x):
            h = self.act(self.b(self.ln(self.a(x * 0.02))))
            return ops.softmax(self.c(h), self.axis)

    class Amp(nn.Cell):
        def __init__(self, f):
            super().__init__(auto_prefix=False)
            self.net, self.loss = ms.amp.auto_mixed_precision(Halved(f), "O2"), nn.MSELoss()

        def construct(self, x, t):
            return self.loss(self.net(x).astype(ms.float32), t)

    class Llama(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.emb, self.g1, self.g2 = nn.Embedding(20, 16), ms.Parameter(ops.ones((16,), ms.float32), name="g1"), ms.Parameter(ops.ones((16,), ms.float32), name="g2")
            self.q, self.k, self.v, self.o = (nn.Dense(16, n, has_bias=False) for n in (16, 8, 8, 16))
            self.gate, self.up, self.down, self.head = (nn.Dense(*s, has_bias=False) for s in ((16, 20), (16, 20), (20, 16), (16, 7)))
            w = np.outer(np.arange(6.0), 100.0 ** (-np.arange(0, 4, 2) / 4))
            w = np.concatenate([w, w], 1).astype(np.float32)
            self.cos, self.sin, self.mask = ms.Tensor(np.cos(w)), ms.Tensor(np.sin(w)), ms.Tensor(np.triu(np.full((6, 6), -1e9, np.float32), 1))
            self.eps, self.swap, self.tiled = 1e-5 if f == "rms" else 1e-6, f == "swap", f == "repeat"
            self.act, self.loss = ops.gelu if f == "gelu" else ops.silu, nn.CrossEntropyLoss()

        def turn(self, x):
            return x * self.cos + ops.cat([-x[..., 2:], x[..., :2]], -1) * self.sin

        def norm(self, x, g):
            return x * ops.rsqrt(ops.pow(x, 2).mean(-1, True) + self.eps) * g

        def twice(self, x):
            return ops.tile(x, (1, 2, 1, 1)) if self.tiled else ops.repeat_interleave(x, 2, 1)

        def construct(self, ids, t):
            x = self.emb(ids) * 0.01
            h = self.norm(x, self.g1)
            q = self.turn(self.q(h).reshape(3, 6, 4, 4).transpose(0, 2, 1, 3))
            k = self.twice(self.turn(self.k(h).reshape(3, 6, 2, 4).transpose(0, 2, 1, 3)))
            v = self.twice(self.v(h).reshape(3, 6, 2, 4).transpose(0, 2, 1, 3))
            a = ops.softmax(ops.matmul(q, k.transpose(0, 1, 3, 2)) * 0.5 + self.mask, -1)
            x = x + self.o(ops.matmul(a, v).transpose(0, 2, 1, 3).reshape(3, 6, 16))
            h = self.norm(x, self.g2)
            if self.swap:
                x = x + self.down(self.gate(h) * self.act(self.up(h)))
            else:
                x = x + self.down(self.act(self.gate(h)) * self.up(h))
            return self.loss(self.head(x[:, -1]), t)

    class Wave(nn.Cell):
        def __init__(self, f):
            super().__init__()
            none = {"pad_mode": "valid", "has_bias": True}
            self.c1, self.c2 = nn.Conv1d(12, 16, 2, **none), nn.Conv1d(8, 16, 2, dilation=1 if f == "dilation" else 2, **none)
            self.skip, self.out, self.left = nn.Conv1d(8, 10, 1, **none), nn.Conv1d(10, 12, 1, **none), 1 if f == "dilation" else 2
            self.swap, self.act, self.loss = f == "swap", ops.relu6 if f == "relu6" else ops.relu, nn.MSELoss()

        def gated(self, h):
            a, b = ops.chunk(h, 2, 1)
            return ops.tanh(b) * ops.sigmoid(a) if self.swap else ops.tanh(a) * ops.sigmoid(b)

        def construct(self, x, t):
            x, t = x.transpose(0, 2, 1), t.transpose(0, 2, 1)
            a = self.gated(self.c1(ops.pad(x, (1, 0))))
            b = a + self.gated(self.c2(ops.pad(a, (self.left, 0))))
            return self.loss(self.out(self.act(self.skip(b) * 20.0)), t)

    class Mdn(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.a, self.pi, self.mu, self.sigma = nn.Dense(12, 16), nn.Dense(16, 4), nn.Dense(16, 4), nn.Dense(16, 4)
            self.axis, self.low, self.elu = 1 if f == "axis" else -1, 0.1 if f == "clamp" else 0.5, f == "softplus"

        def construct(self, x, t):
            h = ops.tanh(self.a(x))
            s = self.sigma(h)
            s = ops.clamp(ops.elu(s) + 1.0 if self.elu else ops.softplus(s), self.low)
            z = (t[..., :1] - self.mu(h)) / s
            p = ops.log_softmax(self.pi(h), -1) - ops.log(s) - 0.5 * z * z
            return -ops.logsumexp(p, self.axis).mean()

    class Clipadamw(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.fc1, self.ln, self.fc2 = nn.Dense(10, 12), nn.LayerNorm((12,), epsilon=1e-5), nn.Dense(12, 7)
            self.act, self.loss = nn.GELU(approximate=False), nn.CrossEntropyLoss()

        def construct(self, x, t):
            return 5.0 * self.loss(self.fc2(self.act(self.ln(self.fc1(x)))), t)

    class Warmadam(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.fc1, self.fc2, self.loss = nn.Dense(10, 12), nn.Dense(12, 7), nn.CrossEntropyLoss()

        def construct(self, x, t):
            return self.loss(self.fc2(ops.tanh(self.fc1(x))), t)

    return locals()


def mindspore_weights(name, fault, w):
    order = {("bigru", "parts"): ("gru.", (1, 0, 2)), ("seqlstm", "parts"): ("dec.", (0, 2, 1, 3))}.get((name, fault))
    for k in [*w]:
        w[k.replace("linear", "dense")] = w[k]  # of the library's encoder layer
        if name == "wave" and w[k].ndim == 3:
            w[k] = w[k][:, :, None]
        if order and k.startswith(order[0]):
            parts = np.split(w[k], len(order[1]))
            w[k] = np.concatenate([parts[i] for i in order[1]])
    if name == "seqlstm" and fault == "bias":
        w["enc.bias_hh_l0"] = w["enc.bias_hh_l0"] * 0
    return w


def mindspore_clip(name, fault):
    from mindspore import ops
    if name != "clipadamw":
        return None
    return (lambda g: ops.clip_by_value(g, -0.1, 0.1)) if fault == "value" else (lambda g: ops.clip_by_global_norm(g, 1.0))


def mindspore_optimizer(name, params, fault):
    from mindspore import nn
    from mindspore.experimental import optim
    if name == "clipadamw":
        return optim.AdamW(params, lr=1e-2, weight_decay=0.01 if fault == "decay" else 0.05, eps=1e-4 if fault == "eps" else 1e-8)
    if fault == "awd":
        return nn.AdamWeightDecay(params, learning_rate=3e-3)
    return nn.Adam(params, learning_rate=3e-3, eps=1e-4 if fault == "eps" else 1e-8, use_nesterov=fault == "nesterov")
