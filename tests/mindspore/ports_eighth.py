"""An eighth set of ports for ports.py: networks of other families again, scored once before and once behind the mends that were
made beside it; what is right to name was fixed before any verdict on them was seen. The same conventions."""
import numpy as np

PORTS = {
    "lrn": ("eighth", "img", False, {
        "alpha": ("LRN", "alpha"), "turned": ("Conv2DTranspose Conv2DBackpropInput", ""), "ceil": ("AvgPool", "")}),
    "style": ("eighth", "img", False, {
        "zero": ("Conv2D MirrorPad PadV3", "pad"), "eps": ("GroupNorm", "eps"), "shuffle": ("Transpose Reshape", "")}),
    "siren": ("eighth", "x", False, {"omega": ("Mul", "1"), "cos": ("Cos", ""), "l1": ("loss-", "")}),
    "sets": ("eighth", "x", False, {
        "dim": ("ReduceMax ArgMaxWithValue", "dim"), "sum": ("ReduceSum", ""), "mish": ("Mish", ""), "elu": ("CeLU", "")}),
    "window": ("eighth", "img", False, {
        "shift": ("Roll Concat StridedSlice", ""), "eps": ("LayerNorm", "eps"), "bias": ("Softmax", ""), "gelu": ("GeLU", "tanh")}),
    "memory": ("eighth", "x", False, {"p": ("LpNorm", "p ord"), "beta": ("Mul", "2"), "axis": ("Softmax", "dim")}),
    "grucell": ("eighth", "ids", False, {
        "gates": ("cell-GRUCell", ""), "bias": ("cell-GRUCell", "bias"), "pad": ("Gather emb-Embedding", "")}),
    "clipped": ("eighth", "step", True, {"each": ("opt- LpNorm Div RealDiv Mul Select", ""), "norm": ("opt- Div RealDiv Mul Select Maximum Minimum", "2"), "lr": ("opt-", "lr")}),
    "distill": ("eighth", "step", True, {"detach": ("opt- Gradients", ""), "temp": ("Div RealDiv Mul", "2"), "decay": ("opt-", "weight_decay")}),
}


def torch_nets():
    import torch
    from torch import nn
    import torch.nn.functional as F

    class lrn(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.up = nn.Conv2d(3, 8, 3, padding=1), nn.ConvTranspose2d(8, 4, 4, stride=2, padding=1)
            self.norm, self.fc = nn.LocalResponseNorm(5, alpha=0.5, beta=0.75, k=1.0), nn.Linear(4 * 64, 7)

        def forward(self, x, t):
            x = self.norm(F.relu(self.conv(x)))
            x = F.avg_pool2d(F.relu(self.up(x)), 2, 2)
            return F.cross_entropy(self.fc(x.flatten(1)), t)

    class style(nn.Module):
        def __init__(self):
            super().__init__()
            self.pad, self.conv, self.norm = nn.ReflectionPad2d(1), nn.Conv2d(3, 12, 3), nn.InstanceNorm2d(12, affine=True)
            self.fc = nn.Linear(3 * 256, 7)

        def forward(self, x, t):
            x = torch.tanh(self.norm(self.conv(self.pad(x)) * 0.05))
            x = F.pixel_shuffle(x, 2)
            return F.cross_entropy(self.fc(x.flatten(1)), t)

    class siren(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = nn.Linear(12, 16), nn.Linear(16, 16), nn.Linear(16, 12)

        def forward(self, x, t):
            x = torch.sin(3.0 * self.a(x))
            x = torch.sin(3.0 * self.b(x))
            return F.mse_loss(self.c(x), t)

    class sets(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c, self.d = nn.Linear(12, 16), nn.Linear(16, 8), nn.Linear(16, 10), nn.Linear(10, 12)

        def forward(self, x, t):
            x = self.b(F.silu(self.a(x)))
            x = torch.cat((torch.amax(x, dim=1), torch.mean(x, dim=1)), dim=-1)
            return F.l1_loss(self.d(F.elu(self.c(x))), t.sum(1))

    class window(nn.Module):
        def __init__(self):
            super().__init__()
            self.patch, self.ln1, self.ln2 = nn.Conv2d(3, 16, 2, stride=2), nn.LayerNorm(16), nn.LayerNorm(16)
            self.qkv, self.proj, self.table = nn.Linear(16, 48), nn.Linear(16, 16), nn.Parameter(torch.randn(4, 4))
            self.up, self.down, self.head = nn.Linear(16, 24), nn.Linear(24, 16), nn.Linear(16, 7)

        def forward(self, x, t):
            x = self.patch(x).permute(0, 2, 3, 1) * 0.02
            h = torch.roll(self.ln1(x), (-1, -1), (1, 2))
            h = h.reshape(4, 2, 2, 2, 2, 16).permute(0, 1, 3, 2, 4, 5).reshape(16, 4, 16)
            q, k, v = self.qkv(h).split(16, dim=-1)
            a = F.softmax(torch.bmm(q, k.transpose(1, 2)) * 0.25 + self.table, dim=-1)
            h = self.proj(torch.bmm(a, v)).reshape(4, 2, 2, 2, 2, 16).permute(0, 1, 3, 2, 4, 5).reshape(4, 4, 4, 16)
            x = x + torch.roll(h, (1, 1), (1, 2))
            x = x + self.down(F.gelu(self.up(self.ln2(x))))
            return F.cross_entropy(self.head(x.mean((1, 2))), t)

    class memory(nn.Module):
        def __init__(self):
            super().__init__()
            self.key, self.bank, self.out = nn.Linear(12, 8), nn.Parameter(torch.randn(9, 8)), nn.Linear(8, 12)

        def forward(self, x, t):
            k = self.key(x)
            k = k / torch.linalg.vector_norm(k, dim=-1, keepdim=True)
            m = self.bank / torch.linalg.vector_norm(self.bank, dim=-1, keepdim=True)
            w = F.softmax(torch.matmul(k, m.t()) * 5.0, dim=-1)
            return F.huber_loss(self.out(torch.matmul(w, self.bank)), t)

    class grucell(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.cell, self.fc = nn.Embedding(20, 10), nn.GRUCell(10, 8), nn.Linear(8, 7)

        def forward(self, ids, t):
            x = self.emb(ids)
            h = torch.zeros(3, 8)
            for i in range(3):
                h = self.cell(x[:, i], h)
            return F.cross_entropy(self.fc(h), t)

    class clipped(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.fc2 = nn.Linear(10, 16), nn.Linear(16, 7)

        def forward(self, x, t):
            return 4.0 * F.cross_entropy(self.fc2(torch.tanh(self.fc1(x))), t)

    class distill(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.fc2, self.teach = nn.Linear(10, 16), nn.Linear(16, 7), nn.Linear(10, 7)

        def forward(self, x, t):
            y = self.fc2(F.relu(self.fc1(x)))
            soft = F.softmax(self.teach(x).detach() / 4.0, dim=-1)
            return F.cross_entropy(y, t) + 0.5 * F.mse_loss(F.softmax(y / 4.0, dim=-1), soft)

    return locals()


def torch_optimizer(name, p):
    import torch
    return {"clipped": lambda: torch.optim.SGD(p, lr=0.1, momentum=0.9),
            "distill": lambda: torch.optim.AdamW(p, lr=1e-2, weight_decay=0.1)}.get(name, lambda: None)()


def torch_clip(name, params):
    import torch
    if name == "clipped":
        torch.nn.utils.clip_grad_norm_(params, 1.0)


def mindspore_nets():
    import mindspore as ms
    from mindspore import nn, ops

    class Lrn(nn.Cell):
        def __init__(self, f):
            super().__init__()
            # torch divides alpha by the size, MindSpore does not.
            self.conv, self.relu = nn.Conv2d(3, 8, 3, pad_mode="pad", padding=1, has_bias=True), nn.ReLU()
            self.up = nn.Conv2dTranspose(8, 4, 4, stride=2, has_bias=True, pad_mode="pad", padding=1)
            self.norm = ops.LRN(2, 1.0, 0.5 if f == "alpha" else 0.1, 0.75)
            self.pool, self.fc, self.loss = nn.AvgPool2d(3, 2, pad_mode="same") if f == "ceil" else nn.AvgPool2d(2, 2), nn.Dense(4 * 64, 7), nn.CrossEntropyLoss()

        def construct(self, x, t):
            x = self.norm(self.relu(self.conv(x)))
            return self.loss(self.fc(self.pool(self.relu(self.up(x))).reshape(4, -1)), t)

    class Style(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.zero, self.pad = f == "zero", nn.ReflectionPad2d(1)
            self.conv = nn.Conv2d(3, 12, 3, has_bias=True, pad_mode="pad" if f == "zero" else "valid", padding=1 if f == "zero" else 0)
            self.norm, self.fc, self.loss = nn.GroupNorm(12, 12, 1e-3 if f == "eps" else 1e-5), nn.Dense(3 * 256, 7), nn.CrossEntropyLoss()
            self.turn = f == "shuffle"

        def construct(self, x, t):
            x = self.conv(x if self.zero else self.pad(x))
            x = ops.tanh(self.norm(x * 0.05))
            if self.turn:
                x = x.reshape(4, 2, 2, 3, 8, 8).transpose(0, 3, 4, 1, 5, 2)
            else:
                x = x.reshape(4, 3, 2, 2, 8, 8).transpose(0, 1, 4, 2, 5, 3)
            return self.loss(self.fc(x.reshape(4, -1)), t)

    class Siren(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.a, self.b, self.c = nn.Dense(12, 16), nn.Dense(16, 16), nn.Dense(16, 12)
            self.w, self.last, self.loss = 1.0 if f == "omega" else 3.0, ops.cos if f == "cos" else ops.sin, nn.L1Loss() if f == "l1" else nn.MSELoss()

        def construct(self, x, t):
            x = ops.sin(self.w * self.a(x))
            x = self.last(3.0 * self.b(x))
            return self.loss(self.c(x), t)

    class Sets(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.a, self.b, self.c, self.d = nn.Dense(12, 16), nn.Dense(16, 8), nn.Dense(16, 10), nn.Dense(10, 12)
            self.act, self.sum, self.axis = ops.mish if f == "mish" else ops.silu, f == "sum", 0 if f == "dim" else 1
            self.flat, self.loss = f == "elu", nn.L1Loss()

        def construct(self, x, t):
            x = self.b(self.act(self.a(x)))
            top = ops.amax(x, 1)
            if self.axis == 0:
                top = ops.amax(x, 0)[:5]
            x = ops.cat((top, x.sum(1) if self.sum else x.mean(1)), -1)
            x = self.c(x)
            x = ops.celu(x, 2.0) if self.flat else ops.elu(x)
            return self.loss(self.d(x), t.sum(1))

    class Window(nn.Cell):
        def __init__(self, f):
            super().__init__()
            eps = {} if f == "eps" else {"epsilon": 1e-5}
            self.patch, self.ln1, self.ln2 = nn.Conv2d(3, 16, 2, stride=2, has_bias=True), nn.LayerNorm((16,), **eps), nn.LayerNorm((16,), **eps)
            self.qkv, self.proj, self.table = nn.Dense(16, 48), nn.Dense(16, 16), ms.Parameter(ops.ones((4, 4), ms.float32), name="table")
            self.up, self.down, self.head = nn.Dense(16, 24), nn.Dense(24, 16), nn.Dense(16, 7)
            self.by, self.plain, self.act, self.loss = 0 if f == "shift" else -1, f == "bias", nn.GELU(f == "gelu"), nn.CrossEntropyLoss()

        def roll(self, x, by):
            if self.by == 0:
                return x
            x = ops.cat((x[:, -by:], x[:, :-by]), 1)
            return ops.cat((x[:, :, -by:], x[:, :, :-by]), 2)

        def construct(self, x, t):
            x = self.patch(x).transpose(0, 2, 3, 1) * 0.02
            h = self.roll(self.ln1(x), self.by)
            h = h.reshape(4, 2, 2, 2, 2, 16).transpose(0, 1, 3, 2, 4, 5).reshape(16, 4, 16)
            q, k, v = ops.split(self.qkv(h), 16, -1)
            a = ops.bmm(q, k.transpose(0, 2, 1)) * 0.25
            a = ops.softmax(a if self.plain else a + self.table, -1)
            h = self.proj(ops.bmm(a, v)).reshape(4, 2, 2, 2, 2, 16).transpose(0, 1, 3, 2, 4, 5).reshape(4, 4, 4, 16)
            x = x + self.roll(h, -self.by)
            x = x + self.down(self.act(self.up(self.ln2(x))))
            return self.loss(self.head(x.mean((1, 2))), t)

    class Memory(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.key, self.bank, self.out = nn.Dense(12, 8), ms.Parameter(ops.ones((9, 8), ms.float32), name="bank"), nn.Dense(8, 12)
            self.p, self.beta, self.axis, self.loss = 1 if f == "p" else 2, 2.0 if f == "beta" else 5.0, 1 if f == "axis" else -1, nn.HuberLoss()

        def construct(self, x, t):
            k = self.key(x)
            k = k / ops.norm(k, self.p, -1, True)
            m = self.bank / ops.norm(self.bank, 2, -1, True)
            w = ops.softmax(ops.matmul(k, m.T) * self.beta, self.axis)
            return self.loss(self.out(ops.matmul(w, self.bank)), t)

    class Grucell(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.emb, self.cell, self.fc, self.loss = nn.Embedding(20, 10, padding_idx=None), nn.GRUCell(10, 8), nn.Dense(8, 7), nn.CrossEntropyLoss()

        def construct(self, ids, t):
            x = self.emb(ids)
            h = ops.zeros((3, 8), ms.float32)
            for i in range(3):
                h = self.cell(x[:, i], h)
            return self.loss(self.fc(h), t)

    class Clipped(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.fc1, self.fc2, self.loss = nn.Dense(10, 16), nn.Dense(16, 7), nn.CrossEntropyLoss()

        def construct(self, x, t):
            return 4.0 * self.loss(self.fc2(ops.tanh(self.fc1(x))), t)

    class Distill(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.fc1, self.fc2, self.teach = nn.Dense(10, 16), nn.Dense(16, 7), nn.Dense(10, 7)
            self.flow, self.temp, self.loss, self.mse = f == "detach", 2.0 if f == "temp" else 4.0, nn.CrossEntropyLoss(), nn.MSELoss()

        def construct(self, x, t):
            y = self.fc2(ops.relu(self.fc1(x)))
            soft = self.teach(x)
            soft = ops.softmax((soft if self.flow else ops.stop_gradient(soft)) / 4.0, -1)
            return self.loss(y, t) + 0.5 * self.mse(ops.softmax(y / self.temp, -1), soft)

    return locals()


def mindspore_weights(name, fault, w):
    if name == "lrn" and fault == "turned":
        w["up.weight"] = w["up.weight"][:, :, ::-1, ::-1].copy()
    if name == "grucell" and fault == "gates":
        for k in w:
            if k.startswith("cell."):
                r, z, n = np.split(w[k], 3)
                w[k] = np.concatenate((z, r, n))
    if name == "grucell" and fault == "bias":
        w["cell.bias_hh"] = w["cell.bias_hh"] * 0
    if name == "grucell" and fault == "pad":  # the row of padding_idx, which is an id of the batch
        w["emb.weight"][3] = 0
    return w


def mindspore_optimizer(name, params, fault):
    from mindspore import nn
    from mindspore.experimental import optim
    if name == "clipped":
        return nn.Momentum(params, 0.01 if fault == "lr" else 0.1, 0.9)
    # torch's skips what has no gradient
    params = params if fault == "detach" else [p for p in params if not p.name.startswith("teach")]
    return optim.AdamW(params, lr=1e-2, weight_decay=0.01 if fault == "decay" else 0.1)


def mindspore_clip(name, fault):
    from mindspore import Tensor, float32, nn, ops
    if name != "clipped":
        return None
    one, most, norm = nn.ClipByNorm(), Tensor(1.0, float32), 2.0 if fault == "norm" else 1.0

    class Clip(nn.Cell):
        def __init__(self):
            super().__init__()
            self.one, self.most, self.each, self.norm = one, most, fault == "each", norm

        def construct(self, g):
            if self.each:
                return (self.one(g[0], self.most), self.one(g[1], self.most), self.one(g[2], self.most), self.one(g[3], self.most))
            return ops.clip_by_global_norm(g, self.norm)

    return Clip()
