"""A thirteenth set of ports for ports.py, written with its table before any verdict was looked at: grouped bottlenecks, attention of
channels by a convolution, interests of a history, features as tokens, triangles, projected keys, operators, points, a clipped policy,
gates by convolutions, durations, pools for attention, fire modules, trends, experts of several tasks, margins, variances and
covariances, standardized weights, capped scores, coordinates, optimizers. The same conventions; each fault is a default or a habit of MindSpore's that is not torch's."""
import numpy as np

FALSE_LOSS = ("SparseSoftmaxCrossEntropyWithLogits SoftmaxCrossEntropyWithLogits loss-Softmax", "reduction")
PORTS = {
    "resnext": ("thirteenth", "img", True, {
        "momentum": ("BatchNorm", "momentum"), "same": ("Conv2D", "pad"), "pool": ("MaxPool MaxPool3DWithArgmax pool-MaxPool2d", "pad"), "loss": FALSE_LOSS}),
    "eca": ("thirteenth", "img", False, {
        "same": ("Conv2D", "pad"), "nobias": ("Conv2D BiasAdd conv2-Conv2d", "bias"), "leaky": ("LeakyReLU Mul Maximum", "0.2")}),
    "din": ("thirteenth", "ids", True, {
        "axis": ("Softmax", "dim"), "leaky": ("LeakyReLU Mul Maximum", "0.2"), "momentum": ("BatchNorm", "momentum"), "drop": ("Dropout", "keep_prob p 0.9")}),
    "fttrans": ("thirteenth", "x", False, {
        "eps": ("LayerNorm", "eps"), "halves": ("Split StridedSlice ReLU Mul", ""), "reduction": ("SmoothL1Loss", "reduction"), "layout": ("k-Dense k.Dense", "transposed")}),
    "triangle": ("thirteenth", "x", False, {"eps": ("LayerNorm", "eps"), "layout": ("pa-Dense pa.Dense", "transposed"), "pair": ("BatchMatMul", "")}),
    "linformer": ("thirteenth", "ids", False, {
        "eps": ("LayerNorm", "eps"), "gelu": ("GeLU", "tanh"), "axis": ("Softmax", "dim"), "layout": ("q-Dense q.Dense", "transposed")}),
    "deeponet": ("thirteenth", "x", False, {
        "gelu": ("GeLU", "tanh"), "ddof": ("ReduceStd Pow Square ReduceMean ReduceSum Div", "unbiased divided correction"), "reduction": ("SmoothL1Loss", "reduction")}),
    "pointnet": ("thirteenth", "x", True, {
        "momentum": ("BatchNorm", "momentum"), "leaky": ("LeakyReLU Mul Maximum", "0.2"), "drop": ("Dropout", "keep_prob p 0.9"), "turned": ("BatchMatMul", "")}),
    "ppo": ("thirteenth", "x", False, {
        "ddof": ("ReduceStd Pow Square ReduceMean ReduceSum Div", "unbiased divided correction"), "axis": ("LogSoftmax", "dim"), "reduction": ("SmoothL1Loss", "reduction")}),
    "convlstm": ("thirteenth", "img", False, {
        "gates": ("Sigmoid Tanh Split StridedSlice Mul", ""), "same": ("Conv2D", "pad"), "nobias": ("Conv2D BiasAdd gate-Conv2d", "bias"), "order": ("Concat", "")}),
    "durations": ("thirteenth", "ids", True, {
        "eps": ("LayerNorm", "eps"), "drop": ("Dropout", "keep_prob p 0.9"), "nobias": ("Conv2D BiasAdd conv2-Conv1d", "bias"), "reduction": ("SmoothL1Loss", "reduction")}),
    "poolformer": ("thirteenth", "img", False, {
        "same": ("Conv2D", "pad"), "gelu": ("GeLU", "tanh"), "count": ("AvgPool AvgPool3D pool-AvgPool2d", "count_include_pad"), "nobias": ("Conv2D BiasAdd up-Conv2d", "bias")}),
    "fire": ("thirteenth", "img", False, {
        "ceil": ("MaxPool MaxPool3DWithArgmax pool-MaxPool2d", "ceil"), "stride": ("MaxPool MaxPool3DWithArgmax pool-MaxPool2d", "stride"),
        "nobias": ("Conv2D BiasAdd wide-Conv2d", "bias"), "loss": FALSE_LOSS}),
    "trend": ("thirteenth", "x", False, {
        "same": ("AvgPool AvgPool3D pool-AvgPool1d", "pad count_include_pad"), "layout": ("season-Dense season.Dense", "transposed"),
        "reduction": ("SmoothL1Loss", "reduction"), "ddof": ("ReduceStd Pow Square ReduceMean ReduceSum Div", "unbiased divided correction")}),
    "mmoe": ("thirteenth", "ids", False, {
        "leaky": ("LeakyReLU Mul Maximum", "0.2"), "axis": ("Softmax", "dim"), "rows": ("Gather emb-Embedding", ""), "l2": ("L2Normalize LpNorm Maximum Div RealDiv", "eps")}),
    "margin": ("thirteenth", "x", False, {"l2": ("L2Normalize LpNorm Maximum Div RealDiv", "eps"), "leaky": ("LeakyReLU Mul Maximum", "0.2"), "loss": FALSE_LOSS}),
    "vicreg": ("thirteenth", "x", True, {
        "momentum": ("BatchNorm", "momentum"), "ddof": ("ReduceStd Pow Square ReduceMean ReduceSum Div", "unbiased divided correction"), "cov": ("Div RealDiv Mul", "30")}),
    "standard": ("thirteenth", "img", False, {
        "ddof": ("ReduceStd Pow Square ReduceMean ReduceSum Div", "unbiased divided correction"), "same": ("Conv2D", "pad"), "leaky": ("LeakyReLU Mul Maximum", "0.2")}),
    "capped": ("thirteenth", "ids", False, {"erf": ("GeLU Div Erf Mul", "tanh approximate erf"), "one": ("Add Mul", ""), "turned": ("o-Dense o.Dense", "transposed")}),
    "coords": ("thirteenth", "img", False, {
        "grid": ("Meshgrid BroadcastTo Reshape Stack Concat", "indexing"), "same": ("Conv2D", "pad"), "half": ("ResizeBilinearV2", "half_pixel_centers align_corners"),
        "nobias": ("Conv2D BiasAdd conv2-Conv2d", "bias")}),
    "stepawd": ("thirteenth", "step", True, {"awd": ("opt-", "bias"), "gelu": ("GeLU", "tanh"), "lneps": ("LayerNorm", "eps")}),
    "stepsgd": ("thirteenth", "step", True, {"nesterov": ("opt-", "nesterov"), "decay": ("opt-", "weight_decay"), "momentum": ("BatchNorm", "momentum")}),
}


def torch_nets():
    import torch
    from torch import nn
    import torch.nn.functional as F

    class resnext(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem, self.bn1, self.pool = nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(8), nn.MaxPool2d(3, 2, 1)
            self.c1, self.c2, self.bn2 = nn.Conv2d(8, 8, 1, bias=False), nn.Conv2d(8, 8, 3, padding=1, groups=4, bias=False), nn.BatchNorm2d(8)
            self.c3, self.bn3, self.fc = nn.Conv2d(8, 8, 1, bias=False), nn.BatchNorm2d(8), nn.Linear(8, 7)

        def forward(self, x, t):
            x = self.pool(F.relu(self.bn1(self.stem(x))))
            y = F.relu(self.bn2(self.c2(F.relu(self.c1(x)))))
            x = F.relu(x + self.bn3(self.c3(y)))
            return F.cross_entropy(self.fc(x.mean((2, 3))), t)

    class eca(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.chan, self.conv2 = nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.Conv1d(1, 1, 3, padding=1, bias=False), nn.Conv2d(8, 6, 3, padding=1)
            self.act, self.fc = nn.LeakyReLU(), nn.Linear(6, 7)

        def forward(self, x, t):
            x = self.act(self.conv1(x))
            g = torch.sigmoid(self.chan(x.mean((2, 3)).unsqueeze(1)))
            x = self.conv2(x * g.reshape(4, 8, 1, 1))
            return F.cross_entropy(self.fc(self.act(x).mean((2, 3))), t)

    class din(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.fc1, self.fc2 = nn.Embedding(20, 8), nn.Linear(32, 12), nn.Linear(12, 1)
            self.fc3, self.bn, self.drop, self.fc4, self.act = nn.Linear(16, 10), nn.BatchNorm1d(10), nn.Dropout(0.0), nn.Linear(10, 7), nn.LeakyReLU()

        def forward(self, ids, t):
            h, q = self.emb(ids), self.emb(t)
            w = q.unsqueeze(1).expand(3, 6, 8)
            a = self.fc2(self.act(self.fc1(torch.cat([h, w, h - w, h * w], -1))))
            v = (F.softmax(a, dim=1) * h).sum(1)
            y = self.act(self.bn(self.fc3(torch.cat([v, q], -1))))
            return F.cross_entropy(self.fc4(self.drop(y)), t)

    class fttrans(nn.Module):
        def __init__(self):
            super().__init__()
            self.w, self.b, self.cls = nn.Parameter(torch.randn(12, 8)), nn.Parameter(torch.randn(12, 8)), nn.Parameter(torch.randn(1, 1, 8))
            self.ln1, self.ln2 = nn.LayerNorm(8), nn.LayerNorm(8)
            self.q, self.k, self.v, self.o = (nn.Linear(8, 8) for _ in range(4))
            self.up, self.down, self.head = nn.Linear(8, 32), nn.Linear(16, 8), nn.Linear(8, 12)

        def forward(self, x, t):
            x = x.mean(1).unsqueeze(-1) * self.w + self.b
            x = torch.cat([self.cls.expand(5, 1, 8), x], 1) * 0.01
            h = self.ln1(x)
            a = F.softmax(torch.bmm(self.q(h), self.k(h).transpose(1, 2)) / 2.8284, dim=-1)
            x = x + self.o(torch.bmm(a, self.v(h))) * 0.02
            a, b = self.up(self.ln2(x)).chunk(2, -1)
            x = x + self.down(a * F.relu(b))
            return F.smooth_l1_loss(self.head(x[:, 0]), t.mean(1))

    class triangle(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln1, self.ln2 = nn.LayerNorm(12), nn.LayerNorm(6)
            self.pa, self.pb, self.ga, self.gb, self.g = (nn.Linear(12, 12) for _ in range(5))
            self.o = nn.Linear(6, 12)

        def forward(self, x, t):
            h = self.ln1(x * 0.01)
            a = torch.sigmoid(self.ga(h)) * self.pa(h)
            b = torch.sigmoid(self.gb(h)) * self.pb(h)
            y = self.o(self.ln2(torch.bmm(a, b.transpose(1, 2)) * 0.02))
            return F.mse_loss(x + torch.sigmoid(self.g(h)) * y, t)

    class linformer(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.ln1, self.ln2 = nn.Embedding(20, 16), nn.LayerNorm(16), nn.LayerNorm(16)
            self.q, self.k, self.v, self.o = (nn.Linear(16, 16, bias=False) for _ in range(4))
            self.e, self.f = nn.Linear(6, 3, bias=False), nn.Linear(6, 3, bias=False)
            self.up, self.act, self.down, self.head = nn.Linear(16, 28), nn.GELU(), nn.Linear(28, 16), nn.Linear(16, 7)

        def forward(self, ids, t):
            x = self.emb(ids) * 0.01
            h = self.ln1(x)
            k, v = self.e(self.k(h).transpose(1, 2)), self.f(self.v(h).transpose(1, 2))
            a = F.softmax(torch.bmm(self.q(h), k) * 0.25, dim=-1)
            x = x + self.o(torch.bmm(a, v.transpose(1, 2))) * 0.02
            x = x + self.down(self.act(self.up(self.ln2(x))))
            return F.cross_entropy(self.head(x.mean(1)), t)

    class deeponet(nn.Module):
        def __init__(self):
            super().__init__()
            self.b1, self.b2, self.t1, self.t2, self.act, self.bias = nn.Linear(72, 16), nn.Linear(16, 10), nn.Linear(12, 16), nn.Linear(16, 10), nn.GELU(), nn.Parameter(torch.randn(1))

        def forward(self, x, t):
            u = (x - x.mean(1, keepdim=True)) / x.std(1, keepdim=True)
            b = self.b2(self.act(self.b1(u.reshape(5, 72))))
            y = self.t2(torch.tanh(self.t1(t)))
            s = (b.unsqueeze(1) * y).sum(-1) + self.bias
            return F.smooth_l1_loss(s, x.mean(-1))

    class pointnet(nn.Module):
        def __init__(self):
            super().__init__()
            self.tn1, self.tn2, self.fc1, self.bn = nn.Linear(12, 16), nn.Linear(16, 144), nn.Linear(12, 16), nn.BatchNorm1d(16)
            self.act, self.fc2, self.drop, self.fc3 = nn.LeakyReLU(), nn.Linear(16, 20), nn.Dropout(0.0), nn.Linear(20, 12)

        def forward(self, x, t):
            m = self.tn2(F.relu(self.tn1(x)).amax(1)).reshape(5, 12, 12)
            x = torch.bmm(x, m)
            h = self.act(self.bn(self.fc1(x).reshape(30, 16)))
            h = self.fc2(h).reshape(5, 6, 20).amax(1)
            return F.mse_loss(self.fc3(self.drop(h)), t.mean(1))

    class ppo(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.pi, self.v = nn.Linear(12, 16), nn.Linear(16, 5), nn.Linear(16, 1)

        def forward(self, x, t):
            h = torch.tanh(self.fc(x))
            logp = F.log_softmax(self.pi(h), dim=-1)
            old = t[:, :, :5] * 0.3 - 1.6
            ratio = torch.exp(logp - old)
            adv = t.mean(-1)
            adv = ((adv - adv.mean(1, keepdim=True)) / (adv.std(1, keepdim=True) + 1e-8)).unsqueeze(-1)
            gain = torch.minimum(ratio * adv, torch.clamp(ratio, 0.8, 1.2) * adv).mean()
            entropy = -(torch.exp(logp) * logp).sum(-1).mean()
            return F.smooth_l1_loss(self.v(h).squeeze(-1), t.sum(-1)) - gain - 0.01 * entropy

    class convlstm(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate, self.head, self.fc = nn.Conv2d(9, 24, 3, padding=1), nn.Conv2d(6, 8, 3, stride=2, padding=1), nn.Linear(8, 7)

        def forward(self, x, t):
            h, c = torch.zeros(4, 6, 8, 8), torch.zeros(4, 6, 8, 8)
            for k in range(2):
                i, f, o, g = self.gate(torch.cat([x * (1.0 - 0.5 * k), h], 1)).chunk(4, 1)
                c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
                h = torch.sigmoid(o) * torch.tanh(c)
            return F.cross_entropy(self.fc(F.relu(self.head(h)).mean((2, 3))), t)

    class durations(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.conv1, self.ln1, self.drop = nn.Embedding(20, 12), nn.Conv1d(12, 16, 3, padding=1), nn.LayerNorm(16), nn.Dropout(0.0)
            self.conv2, self.ln2, self.dur, self.fc = nn.Conv1d(16, 16, 3, padding=1), nn.LayerNorm(16), nn.Linear(16, 1), nn.Linear(16, 7)

        def forward(self, ids, t):
            x = self.emb(ids)
            h = self.drop(self.ln1(F.relu(self.conv1(x.transpose(1, 2))).transpose(1, 2) * 0.02))
            h = self.ln2(F.relu(self.conv2(h.transpose(1, 2))).transpose(1, 2))
            d = F.smooth_l1_loss(self.dur(h).squeeze(-1), torch.log(ids.float() + 1.0))
            return d + F.cross_entropy(self.fc(h.mean(1)), t)

    class poolformer(nn.Module):
        def __init__(self):
            super().__init__()
            self.patch, self.gn, self.pool, self.ls = nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.GroupNorm(1, 8), nn.AvgPool2d(3, 1, 1, count_include_pad=False), nn.Parameter(torch.randn(8))
            self.up, self.act, self.down, self.fc = nn.Conv2d(8, 16, 1), nn.GELU(), nn.Conv2d(16, 8, 1), nn.Linear(8, 7)

        def forward(self, x, t):
            x = self.patch(x)
            h = self.gn(x)
            x = x + (self.pool(h) - h) * self.ls.reshape(1, 8, 1, 1)
            x = x + self.down(self.act(self.up(x)))
            return F.cross_entropy(self.fc(x.mean((2, 3))), t)

    class fire(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.pool, self.squeeze = nn.Conv2d(3, 8, 3, padding=1), nn.MaxPool2d(3, 2, ceil_mode=True), nn.Conv2d(8, 4, 1)
            self.thin, self.wide, self.head = nn.Conv2d(4, 6, 1), nn.Conv2d(4, 6, 3, padding=1), nn.Conv2d(12, 7, 1)

        def forward(self, x, t):
            x = self.pool(F.relu(self.conv(x)))
            x = F.relu(self.squeeze(x))
            x = torch.cat([F.relu(self.thin(x)), F.relu(self.wide(x))], 1)
            return F.cross_entropy(F.relu(self.head(x)).mean((2, 3)), t)

    class trend(nn.Module):
        def __init__(self):
            super().__init__()
            self.pool, self.season, self.slow = nn.AvgPool1d(3, 1, 1), nn.Linear(6, 6), nn.Linear(6, 6)

        def forward(self, x, t):
            x = x.transpose(1, 2)
            slow = self.pool(x)
            fast = x - slow
            fast = fast / torch.sqrt(torch.var(fast, -1, keepdim=True) + 0.1)
            return F.smooth_l1_loss(self.season(fast) + self.slow(slow), t.transpose(1, 2))

    class mmoe(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.e1, self.e2, self.e3, self.act = nn.Embedding(20, 8), nn.Linear(8, 10), nn.Linear(8, 10), nn.Linear(8, 10), nn.LeakyReLU()
            self.g1, self.g2, self.out1, self.out2 = nn.Linear(8, 3), nn.Linear(8, 3), nn.Linear(10, 1), nn.Linear(10, 1)

        def forward(self, ids, t):
            x = F.normalize(self.emb(ids).mean(1) * 2e-3, dim=-1)
            e = torch.stack([self.act(self.e1(x)), self.act(self.e2(x)), self.act(self.e3(x))], 1)
            a = torch.bmm(F.softmax(self.g1(x), dim=-1).unsqueeze(1), e).squeeze(1)
            b = torch.bmm(F.softmax(self.g2(x), dim=-1).unsqueeze(1), e).squeeze(1)
            y = (t > 3).float()
            return F.binary_cross_entropy_with_logits(self.out1(a).squeeze(-1), y) + F.binary_cross_entropy_with_logits(self.out2(b).squeeze(-1), 1.0 - y)

    class margin(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.act, self.fc2, self.w = nn.Linear(72, 16), nn.LeakyReLU(), nn.Linear(16, 12), nn.Parameter(torch.randn(7, 12))

        def forward(self, x, t):
            f = F.normalize(self.fc2(self.act(self.fc1(x.reshape(5, 72)))) * 2e-3, dim=-1)
            cos = torch.matmul(f, F.normalize(self.w, dim=-1).t())
            y = torch.argmax(t[:, 0, :7], -1)
            return F.cross_entropy((cos - 0.35 * F.one_hot(y, 7).float()) * 16.0, y)

    class vicreg(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.bn, self.fc2 = nn.Linear(12, 16), nn.BatchNorm1d(16), nn.Linear(16, 8)

        def forward(self, x, t):
            z = self.fc2(F.relu(self.bn(self.fc1(x.reshape(30, 12)))))
            z = z - z.mean(0, keepdim=True)
            s = torch.sqrt(torch.var(z, 0) + 1e-4)
            c = torch.matmul(z.t(), z) / 29.0
            off = torch.square(c * (1.0 - torch.eye(8))).sum() / 8.0
            return F.relu(1.0 - s).mean() + off + F.mse_loss(z, t.reshape(30, 12)[:, :8])

    class standard(nn.Module):
        def __init__(self):
            super().__init__()
            self.w, self.gain, self.act, self.fc = nn.Parameter(torch.randn(8, 3, 3, 3) * 0.2), nn.Parameter(torch.randn(8)), nn.LeakyReLU(), nn.Linear(8, 7)

        def forward(self, x, t):
            v = torch.var(self.w, (1, 2, 3), keepdim=True)
            w = (self.w - self.w.mean((1, 2, 3), keepdim=True)) * torch.rsqrt(v * 27.0 + 1e-4)
            y = F.conv2d(x, w * self.gain.reshape(8, 1, 1, 1), stride=2, padding=1)
            return F.cross_entropy(self.fc(self.act(y).mean((2, 3))), t)

    class capped(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.n1, self.n2 = nn.Embedding(20, 16), nn.Parameter(torch.randn(16) * 0.1), nn.Parameter(torch.randn(16) * 0.1)
            self.q, self.k, self.v, self.o = (nn.Linear(16, 16, bias=False) for _ in range(4))
            self.gate, self.up, self.down, self.head = nn.Linear(16, 24, bias=False), nn.Linear(16, 24, bias=False), nn.Linear(24, 16, bias=False), nn.Linear(16, 7)
            self.act = nn.GELU(approximate="tanh")

        def norm(self, x, w):
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * (1.0 + w)

        def forward(self, ids, t):
            x = self.emb(ids) * 4.0
            h = self.norm(x, self.n1)
            s = torch.bmm(self.q(h), self.k(h).transpose(1, 2)) * 0.25
            s = torch.tanh(s / 5.0) * 5.0
            x = x + self.o(torch.bmm(F.softmax(s, dim=-1), self.v(h)))
            h = self.norm(x, self.n2)
            x = x + self.down(self.act(self.gate(h)) * self.up(h))
            return F.cross_entropy(self.head(x[:, -1]), t)

    class coords(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.conv2 = nn.Conv2d(5, 8, 3, stride=2, padding=1), nn.Conv2d(8, 3, 1)

        def forward(self, x, t):
            r, c = torch.meshgrid(torch.linspace(-1, 1, 8), torch.linspace(0, 2, 8), indexing="ij")
            g = torch.stack([r, c]).unsqueeze(0).expand(4, 2, 8, 8)
            h = F.relu(self.conv1(torch.cat([x, g], 1)))
            return F.mse_loss(F.interpolate(self.conv2(h), size=(8, 8), mode="bilinear", align_corners=False), x)

    class stepawd(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.ln, self.act, self.fc2 = nn.Linear(10, 18), nn.LayerNorm(18), nn.GELU(), nn.Linear(18, 7)

        def forward(self, x, t):
            h = self.act(self.ln(self.fc1(x) * 0.01))
            return F.cross_entropy(self.fc2(h), t)

    class stepsgd(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.bn, self.fc2 = nn.Linear(10, 14), nn.BatchNorm1d(14), nn.Linear(14, 7)

        def forward(self, x, t):
            return F.cross_entropy(self.fc2(torch.sigmoid(self.bn(self.fc1(x)))), t)

    return {k: v for k, v in locals().items() if k in PORTS}


def torch_optimizer(name, p):
    import torch
    if name == "stepawd":
        return torch.optim.AdamW(list(p), lr=1e-3, weight_decay=0.01)
    if name == "stepsgd":
        return torch.optim.SGD(list(p), lr=5e-2, momentum=0.9, weight_decay=1e-2, nesterov=True)
    return None


def mindspore_nets():
    import mindspore as ms
    from mindspore import nn, ops

    def gelu(f):
        return nn.GELU() if f == "gelu" else nn.GELU(approximate=False)

    def leaky(f):
        return nn.LeakyReLU() if f == "leaky" else nn.LeakyReLU(0.01)

    def norm(n, f, word="eps"):
        return nn.LayerNorm((n,)) if f == word else nn.LayerNorm((n,), epsilon=1e-5)

    def param(name, *shape):
        return ms.Parameter(ops.ones(shape, ms.float32), name=name)

    def padded(f):
        return {} if f == "same" else {"pad_mode": "pad", "padding": 1}

    def share(f):
        return 0.1 if f == "momentum" else 0.9

    def entropy(f):
        return nn.SoftmaxCrossEntropyWithLogits(sparse=True) if f == "loss" else nn.CrossEntropyLoss()

    def smooth(f):
        return nn.SmoothL1Loss() if f == "reduction" else nn.SmoothL1Loss(reduction="mean")

    class Resnext(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.stem, self.bn1 = nn.Conv2d(3, 8, 3, stride=2, **padded(f)), nn.BatchNorm2d(8, momentum=share(f))
            self.pool = nn.MaxPool2d(3, 2, pad_mode="same") if f == "pool" else nn.MaxPool2d(3, 2, pad_mode="pad", padding=1)
            self.c1, self.c2, self.bn2 = nn.Conv2d(8, 8, 1), nn.Conv2d(8, 8, 3, group=4), nn.BatchNorm2d(8, momentum=share(f))
            self.c3, self.bn3, self.fc, self.loss = nn.Conv2d(8, 8, 1), nn.BatchNorm2d(8, momentum=share(f)), nn.Dense(8, 7), entropy(f)

        def construct(self, x, t):
            x = self.pool(ops.relu(self.bn1(self.stem(x))))
            y = ops.relu(self.bn2(self.c2(ops.relu(self.c1(x)))))
            x = ops.relu(x + self.bn3(self.c3(y)))
            return self.loss(self.fc(x.mean((2, 3))), t)

    class Eca(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.conv1, self.chan = nn.Conv2d(3, 8, 3, stride=2, has_bias=True, **padded(f)), nn.Conv1d(1, 1, 3, pad_mode="pad", padding=1)
            self.conv2 = nn.Conv2d(8, 6, 3) if f == "nobias" else nn.Conv2d(8, 6, 3, has_bias=True)
            self.act, self.fc, self.loss = leaky(f), nn.Dense(6, 7), nn.CrossEntropyLoss()

        def construct(self, x, t):
            x = self.act(self.conv1(x))
            g = ops.sigmoid(self.chan(x.mean((2, 3)).expand_dims(1)))
            x = self.conv2(x * g.reshape(4, 8, 1, 1))
            return self.loss(self.fc(self.act(x).mean((2, 3))), t)

    class Din(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.emb, self.fc1, self.fc2, self.fc3, self.fc4 = nn.Embedding(20, 8), nn.Dense(32, 12), nn.Dense(12, 1), nn.Dense(16, 10), nn.Dense(10, 7)
            self.bn, self.drop, self.act = nn.BatchNorm1d(10, momentum=share(f)), nn.Dropout(0.1) if f == "drop" else nn.Dropout(p=0.0), leaky(f)
            self.axis, self.loss = -1 if f == "axis" else 1, nn.CrossEntropyLoss()

        def construct(self, ids, t):
            h, q = self.emb(ids), self.emb(t)
            w = ops.broadcast_to(q.expand_dims(1), (3, 6, 8))
            a = self.fc2(self.act(self.fc1(ops.cat([h, w, h - w, h * w], -1))))
            v = (ops.softmax(a, axis=self.axis) * h).sum(1)
            y = self.act(self.bn(self.fc3(ops.cat([v, q], -1))))
            return self.loss(self.fc4(self.drop(y)), t)

    class Fttrans(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.w, self.b, self.cls = param("w", 12, 8), param("b", 12, 8), param("cls", 1, 1, 8)
            self.ln1, self.ln2, self.other, self.loss = norm(8, f), norm(8, f), f == "halves", smooth(f)
            self.q, self.k, self.v, self.o = (nn.Dense(8, 8) for _ in range(4))
            self.up, self.down, self.head = nn.Dense(8, 32), nn.Dense(16, 8), nn.Dense(8, 12)

        def construct(self, x, t):
            x = x.mean(1).expand_dims(-1) * self.w + self.b
            x = ops.cat([ops.broadcast_to(self.cls, (5, 1, 8)), x], 1) * 0.01
            h = self.ln1(x)
            a = ops.softmax(ops.bmm(self.q(h), self.k(h).transpose(0, 2, 1)) / 2.8284, axis=-1)
            x = x + self.o(ops.bmm(a, self.v(h))) * 0.02
            a, b = ops.chunk(self.up(self.ln2(x)), 2, -1)
            x = x + self.down(ops.relu(a) * b if self.other else a * ops.relu(b))
            return self.loss(self.head(x[:, 0]), t.mean(1))

    class Triangle(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.ln1, self.ln2, self.other = norm(12, f), norm(6, f), f == "pair"
            self.pa, self.pb, self.ga, self.gb, self.g = (nn.Dense(12, 12) for _ in range(5))
            self.o, self.loss = nn.Dense(6, 12), nn.MSELoss()

        def construct(self, x, t):
            h = self.ln1(x * 0.01)
            a = ops.sigmoid(self.ga(h)) * self.pa(h)
            b = ops.sigmoid(self.gb(h)) * self.pb(h)
            y = ops.bmm(b, a.transpose(0, 2, 1)) if self.other else ops.bmm(a, b.transpose(0, 2, 1))
            return self.loss(x + ops.sigmoid(self.g(h)) * self.o(self.ln2(y * 0.02)), t)

    class Linformer(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.emb, self.ln1, self.ln2 = nn.Embedding(20, 16), norm(16, f), norm(16, f)
            self.q, self.k, self.v, self.o = (nn.Dense(16, 16, has_bias=False) for _ in range(4))
            self.e, self.f = nn.Dense(6, 3, has_bias=False), nn.Dense(6, 3, has_bias=False)
            self.up, self.act, self.down, self.head = nn.Dense(16, 28), gelu(f), nn.Dense(28, 16), nn.Dense(16, 7)
            self.axis, self.loss = 1 if f == "axis" else -1, nn.CrossEntropyLoss()

        def construct(self, ids, t):
            x = self.emb(ids) * 0.01
            h = self.ln1(x)
            k, v = self.e(self.k(h).transpose(0, 2, 1)), self.f(self.v(h).transpose(0, 2, 1))
            a = ops.softmax(ops.bmm(self.q(h), k) * 0.25, axis=self.axis)
            x = x + self.o(ops.bmm(a, v.transpose(0, 2, 1))) * 0.02
            x = x + self.down(self.act(self.up(self.ln2(x))))
            return self.loss(self.head(x.mean(1)), t)

    class Deeponet(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.b1, self.b2, self.t1, self.t2, self.act, self.bias = nn.Dense(72, 16), nn.Dense(16, 10), nn.Dense(12, 16), nn.Dense(16, 10), gelu(f), param("bias", 1)
            self.ddof, self.loss = 0 if f == "ddof" else 1, smooth(f)

        def construct(self, x, t):
            u = (x - x.mean(1, True)) / x.std(1, self.ddof, True)
            b = self.b2(self.act(self.b1(u.reshape(5, 72))))
            y = self.t2(ops.tanh(self.t1(t)))
            s = (b.expand_dims(1) * y).sum(-1) + self.bias
            return self.loss(s, x.mean(-1))

    class Pointnet(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.tn1, self.tn2, self.fc1, self.bn = nn.Dense(12, 16), nn.Dense(16, 144), nn.Dense(12, 16), nn.BatchNorm1d(16, momentum=share(f))
            self.act, self.fc2, self.drop, self.fc3 = leaky(f), nn.Dense(16, 20), nn.Dropout(0.1) if f == "drop" else nn.Dropout(p=0.0), nn.Dense(20, 12)
            self.other, self.loss = f == "turned", nn.MSELoss()

        def construct(self, x, t):
            m = self.tn2(ops.amax(ops.relu(self.tn1(x)), 1)).reshape(5, 12, 12)
            x = ops.bmm(x, m.transpose(0, 2, 1)) if self.other else ops.bmm(x, m)
            h = self.act(self.bn(self.fc1(x).reshape(30, 16)))
            h = ops.amax(self.fc2(h).reshape(5, 6, 20), 1)
            return self.loss(self.fc3(self.drop(h)), t.mean(1))

    class Ppo(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.fc, self.pi, self.v = nn.Dense(12, 16), nn.Dense(16, 5), nn.Dense(16, 1)
            self.ddof, self.axis, self.loss = 0 if f == "ddof" else 1, 1 if f == "axis" else -1, smooth(f)

        def construct(self, x, t):
            h = ops.tanh(self.fc(x))
            logp = ops.log_softmax(self.pi(h), axis=self.axis)
            old = t[:, :, :5] * 0.3 - 1.6
            ratio = ops.exp(logp - old)
            adv = t.mean(-1)
            adv = ((adv - adv.mean(1, True)) / (adv.std(1, self.ddof, True) + 1e-8)).expand_dims(-1)
            gain = ops.minimum(ratio * adv, ops.clamp(ratio, 0.8, 1.2) * adv).mean()
            entropy = -(ops.exp(logp) * logp).sum(-1).mean()
            return self.loss(self.v(h).squeeze(-1), t.sum(-1)) - gain - 0.01 * entropy

    class Convlstm(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.gate = nn.Conv2d(9, 24, 3) if f == "nobias" else nn.Conv2d(9, 24, 3, has_bias=True)
            self.head, self.fc, self.loss = nn.Conv2d(6, 8, 3, stride=2, has_bias=True, **padded(f)), nn.Dense(8, 7), nn.CrossEntropyLoss()
            self.other, self.first, self.zero = f == "gates", f == "order", ms.Tensor(np.zeros((4, 6, 8, 8), np.float32))

        def construct(self, x, t):
            h, c = self.zero, self.zero
            for k in range(2):
                v = x * (1.0 - 0.5 * k)
                p = self.gate(ops.cat([h, v] if self.first else [v, h], 1))
                i, f, o, g = ops.chunk(p, 4, 1)
                if self.other:
                    o, g = g, o
                c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
                h = ops.sigmoid(o) * ops.tanh(c)
            return self.loss(self.fc(ops.relu(self.head(h)).mean((2, 3))), t)

    class Durations(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.emb, self.conv1, self.ln1 = nn.Embedding(20, 12), nn.Conv1d(12, 16, 3, pad_mode="pad", padding=1, has_bias=True), norm(16, f)
            self.drop = nn.Dropout(0.1) if f == "drop" else nn.Dropout(p=0.0)
            self.conv2 = nn.Conv1d(16, 16, 3, pad_mode="pad", padding=1, has_bias=f != "nobias")
            self.ln2, self.dur, self.fc, self.smooth, self.loss = norm(16, ""), nn.Dense(16, 1), nn.Dense(16, 7), smooth(f), nn.CrossEntropyLoss()

        def construct(self, ids, t):
            x = self.emb(ids)
            h = self.drop(self.ln1(ops.relu(self.conv1(x.transpose(0, 2, 1))).transpose(0, 2, 1) * 0.02))
            h = self.ln2(ops.relu(self.conv2(h.transpose(0, 2, 1))).transpose(0, 2, 1))
            d = self.smooth(self.dur(h).squeeze(-1), ops.log(ids.astype(ms.float32) + 1.0))
            return d + self.loss(self.fc(h.mean(1)), t)

    class Poolformer(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.patch, self.gn, self.ls = nn.Conv2d(3, 8, 3, stride=2, has_bias=True, **padded(f)), nn.GroupNorm(1, 8), param("ls", 8)
            self.pool = nn.AvgPool2d(3, 1, pad_mode="pad", padding=1, count_include_pad=f == "count")
            self.up, self.act, self.down = nn.Conv2d(8, 16, 1, has_bias=f != "nobias"), gelu(f), nn.Conv2d(16, 8, 1, has_bias=True)
            self.fc, self.loss = nn.Dense(8, 7), nn.CrossEntropyLoss()

        def construct(self, x, t):
            x = self.patch(x)
            h = self.gn(x)
            x = x + (self.pool(h) - h) * self.ls.reshape(1, 8, 1, 1)
            x = x + self.down(self.act(self.up(x)))
            return self.loss(self.fc(x.mean((2, 3))), t)

    class Fire(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.conv, self.squeeze = nn.Conv2d(3, 8, 3, has_bias=True), nn.Conv2d(8, 4, 1, has_bias=True)
            self.pool = {"ceil": nn.MaxPool2d(3, 2), "stride": nn.MaxPool2d(3, pad_mode="pad", ceil_mode=True)}.get(f, nn.MaxPool2d(3, 2, pad_mode="pad", ceil_mode=True))
            self.thin, self.wide, self.head, self.loss = nn.Conv2d(4, 6, 1, has_bias=True), nn.Conv2d(4, 6, 3, has_bias=f != "nobias"), nn.Conv2d(12, 7, 1, has_bias=True), entropy(f)

        def construct(self, x, t):
            x = self.pool(ops.relu(self.conv(x)))
            x = ops.relu(self.squeeze(x))
            x = ops.cat([ops.relu(self.thin(x)), ops.relu(self.wide(x))], 1)
            return self.loss(ops.relu(self.head(x)).mean((2, 3)), t)

    class Trend(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.pool = nn.AvgPool1d(3, 1, pad_mode="same") if f == "same" else nn.AvgPool1d(3, 1, pad_mode="pad", padding=1)
            self.season, self.slow, self.ddof, self.loss = nn.Dense(6, 6), nn.Dense(6, 6), 0 if f == "ddof" else 1, smooth(f)

        def construct(self, x, t):
            x = x.transpose(0, 2, 1)
            slow = self.pool(x)
            fast = x - slow
            fast = fast / ops.sqrt(ops.var(fast, -1, self.ddof, True) + 0.1)
            return self.loss(self.season(fast) + self.slow(slow), t.transpose(0, 2, 1))

    class Mmoe(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.emb, self.e1, self.e2, self.e3, self.act = nn.Embedding(20, 8), nn.Dense(8, 10), nn.Dense(8, 10), nn.Dense(8, 10), leaky(f)
            self.g1, self.g2, self.out1, self.out2 = nn.Dense(8, 3), nn.Dense(8, 3), nn.Dense(10, 1), nn.Dense(10, 1)
            self.norm, self.axis, self.loss = ops.L2Normalize(-1, 1e-4 if f == "l2" else 1e-24), 0 if f == "axis" else -1, nn.BCEWithLogitsLoss()

        def construct(self, ids, t):
            x = self.norm(self.emb(ids).mean(1) * 2e-3)
            e = ops.stack([self.act(self.e1(x)), self.act(self.e2(x)), self.act(self.e3(x))], 1)
            a = ops.bmm(ops.softmax(self.g1(x), axis=self.axis).expand_dims(1), e).squeeze(1)
            b = ops.bmm(ops.softmax(self.g2(x), axis=self.axis).expand_dims(1), e).squeeze(1)
            y = (t > 3).astype(ms.float32)
            return self.loss(self.out1(a).squeeze(-1), y) + self.loss(self.out2(b).squeeze(-1), 1.0 - y)

    class Margin(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.fc1, self.act, self.fc2, self.w = nn.Dense(72, 16), leaky(f), nn.Dense(16, 12), param("w", 7, 12)
            self.norm, self.plain, self.loss = ops.L2Normalize(-1, 1e-4 if f == "l2" else 1e-24), ops.L2Normalize(-1, 1e-24), entropy(f)

        def construct(self, x, t):
            f = self.norm(self.fc2(self.act(self.fc1(x.reshape(5, 72)))) * 2e-3)
            cos = ops.matmul(f, self.plain(self.w).transpose(1, 0))
            y = ops.argmax(t[:, 0, :7], -1).astype(ms.int32)
            return self.loss((cos - 0.35 * ops.one_hot(y, 7, ms.Tensor(1.0), ms.Tensor(0.0))) * 16.0, y)

    class Vicreg(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.fc1, self.bn, self.fc2 = nn.Dense(12, 16), nn.BatchNorm1d(16, momentum=share(f)), nn.Dense(16, 8)
            self.ddof, self.n, self.off, self.loss = 0 if f == "ddof" else 1, 30.0 if f == "cov" else 29.0, ms.Tensor(1.0 - np.eye(8, dtype=np.float32)), nn.MSELoss()

        def construct(self, x, t):
            z = self.fc2(ops.relu(self.bn(self.fc1(x.reshape(30, 12)))))
            z = z - z.mean(0, True)
            s = ops.sqrt(ops.var(z, 0, self.ddof) + 1e-4)
            c = ops.matmul(z.transpose(1, 0), z) / self.n
            off = ops.square(c * self.off).sum() / 8.0
            return ops.relu(1.0 - s).mean() + off + self.loss(z, t.reshape(30, 12)[:, :8])

    class Standard(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.w, self.gain, self.act, self.fc = param("w", 8, 3, 3, 3), param("gain", 8), leaky(f), nn.Dense(8, 7)
            self.ddof, self.same, self.loss = 0 if f == "ddof" else 1, f == "same", nn.CrossEntropyLoss()

        def construct(self, x, t):
            v = ops.var(self.w, (1, 2, 3), self.ddof, True)
            w = (self.w - self.w.mean((1, 2, 3), True)) * ops.rsqrt(v * 27.0 + 1e-4) * self.gain.reshape(8, 1, 1, 1)
            y = ops.conv2d(x, w, None, 2, "same") if self.same else ops.conv2d(x, w, None, 2, "pad", 1)
            return self.loss(self.fc(self.act(y).mean((2, 3))), t)

    class Capped(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.emb, self.n1, self.n2 = nn.Embedding(20, 16), param("n1", 16), param("n2", 16)
            self.q, self.k, self.v, self.o = (nn.Dense(16, 16, has_bias=False) for _ in range(4))
            self.gate, self.up, self.down = nn.Dense(16, 24, has_bias=False), nn.Dense(16, 24, has_bias=False), nn.Dense(24, 16, has_bias=False)
            self.head, self.act, self.plain, self.loss = nn.Dense(16, 7), nn.GELU(approximate=f != "erf"), f == "one", nn.CrossEntropyLoss()

        def norm(self, x, w):
            y = x * ops.rsqrt(ops.pow(x, 2).mean(-1, True) + 1e-6)
            return y * w if self.plain else y * (1.0 + w)

        def construct(self, ids, t):
            x = self.emb(ids) * 4.0
            h = self.norm(x, self.n1)
            s = ops.bmm(self.q(h), self.k(h).transpose(0, 2, 1)) * 0.25
            s = ops.tanh(s / 5.0) * 5.0
            x = x + self.o(ops.bmm(ops.softmax(s, axis=-1), self.v(h)))
            h = self.norm(x, self.n2)
            x = x + self.down(self.act(self.gate(h)) * self.up(h))
            return self.loss(self.head(x[:, -1]), t)

    class Coords(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.conv1, self.conv2 = nn.Conv2d(5, 8, 3, stride=2, has_bias=True, **padded(f)), nn.Conv2d(8, 3, 1, has_bias=f != "nobias")
            self.r, self.c = ms.Tensor(np.linspace(-1, 1, 8, dtype=np.float32)), ms.Tensor(np.linspace(0, 2, 8, dtype=np.float32))
            self.index, self.half, self.old, self.loss = "xy" if f == "grid" else "ij", f == "half", ops.ResizeBilinearV2(), nn.MSELoss()

        def construct(self, x, t):
            r, c = ops.meshgrid(self.r, self.c, indexing=self.index)
            g = ops.broadcast_to(ops.stack([r, c]).expand_dims(0), (4, 2, 8, 8))
            h = self.conv2(ops.relu(self.conv1(ops.cat([x, g], 1))))
            y = self.old(h, (8, 8)) if self.half else ops.interpolate(h, size=(8, 8), mode="bilinear", align_corners=False)
            return self.loss(y, x)

    class Stepawd(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.fc1, self.ln, self.act, self.fc2, self.loss = nn.Dense(10, 18), norm(18, f, "lneps"), gelu(f), nn.Dense(18, 7), nn.CrossEntropyLoss()

        def construct(self, x, t):
            return self.loss(self.fc2(self.act(self.ln(self.fc1(x) * 0.01))), t)

    class Stepsgd(nn.Cell):
        def __init__(self, f):
            super().__init__()
            self.fc1, self.bn, self.fc2, self.loss = nn.Dense(10, 14), nn.BatchNorm1d(14, momentum=share(f)), nn.Dense(14, 7), nn.CrossEntropyLoss()

        def construct(self, x, t):
            return self.loss(self.fc2(ops.sigmoid(self.bn(self.fc1(x)))), t)

    return {k: v for k, v in locals().items() if k.lower() in PORTS}


def mindspore_weights(name, fault, w):
    if fault == "layout":
        k = {"fttrans": "k.weight", "triangle": "pa.weight", "linformer": "q.weight", "trend": "season.weight"}[name]
        w[k] = w[k].T.copy()
    if fault == "rows":
        w["emb.weight"] = np.roll(w["emb.weight"], 1, 0)
    if name in ("eca", "durations"):  # a Conv1d of MindSpore's is one of two dimensions
        w.update({k: v[:, :, None] for k, v in w.items() if v.ndim == 3})
    return w


def mindspore_optimizer(name, params, fault):
    from mindspore import nn
    from mindspore.experimental import optim
    if name == "stepawd":
        if fault == "awd":
            return nn.AdamWeightDecay(params, 1e-3, eps=1e-8, weight_decay=0.01)
        return optim.AdamW(params, lr=1e-3, weight_decay=0.01)
    return optim.SGD(params, lr=5e-2, momentum=0.9, weight_decay=0.0 if fault == "decay" else 1e-2, nesterov=fault != "nesterov")
