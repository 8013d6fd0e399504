"""Networks of pictures and of signals, each as two programs: the bench as torchvision and timm write them, the
device as ports from other frameworks do (channels last, im2col, statistics written out, shifts for convolutions)."""
import math

import torch
import torch.nn.functional as F
from torch import nn

from parts import given, own


def relu(c, x):
    way = c.pick("relu", "relu", "clamp", "maximum", "inplace")
    if way == "clamp":
        return x.clamp(min=0)
    if way == "maximum":
        return torch.maximum(x, torch.zeros((), dtype=x.dtype))
    return torch.relu_(x) if way == "inplace" else torch.relu(x)


def cross_entropy(c, logits, labels):
    with c.at("sum"):
        way = c.pick("loss", "mean", "sum", "gather")
        if c.has("sum"):    # of the classes, not of the samples
            return F.cross_entropy(logits, labels, reduction="sum") / logits.shape[1]
        if way == "mean":
            return F.cross_entropy(logits, labels)
        if way == "sum":
            return F.cross_entropy(logits, labels, reduction="sum") / labels.numel()
        logp = logits - torch.logsumexp(logits, -1, keepdim=True)
        return -logp.gather(-1, labels.unsqueeze(-1)).squeeze(-1).mean()


# --- a small ResNet: a step, and a validation by its running statistics ------------------------------------

RESNET_BUGS = ["eps", "ddof", "pad", "same", "momentum", "sum"]


def resnet(c):
    ch, n, size = c.r.choice([8, 12]), c.r.choice([2, 4]), c.r.choice([8, 12])
    convs = {"stem": (3, ch), "1a": (ch, ch), "1b": (ch, ch), "2a": (ch, 2 * ch), "2b": (2 * ch, 2 * ch), "2d": (ch, 2 * ch)}
    c.w = {k: c.rand(k, b, a, *((1, 1) if k == "2d" else (3, 3)), scale=0.3 / math.sqrt(a)) for k, (a, b) in convs.items()}
    c.g = {k: c.rand(k + "g", b, scale=0.1, around=1) for k, (_, b) in convs.items()}
    c.b = {k: c.rand(k + "b", b, scale=0.1) for k, (_, b) in convs.items()}
    c.fc, c.fcb = c.rand("fc", 10, 2 * ch, scale=1 / math.sqrt(2 * ch)), c.rand("fcb", 10, scale=0.1)
    c.x, c.y = c.rand("x", n, 3, size, size, scale=0.2), c.ints("y", 10, n)
    c.outs = {k: b for k, (_, b) in convs.items()}
    c.force("ddof", "bn", "written")
    return ResNet, PortedResNet


class ConvNorm(nn.Module):
    def __init__(self, c, name, stride=1):
        super().__init__()
        b, a, k, _ = c.w[name].shape
        self.conv = given(nn.Conv2d(a, b, k, stride, k // 2, bias=False), c.w[name])
        self.bn = given(nn.BatchNorm2d(b), c.g[name], c.b[name])

    def forward(self, x):
        return self.bn(self.conv(x))


class Residual(nn.Module):
    def __init__(self, c, name, stride):
        super().__init__()
        self.a, self.b = ConvNorm(c, name + "a", stride), ConvNorm(c, name + "b")
        self.down = ConvNorm(c, name + "d", stride) if stride > 1 else None
        self.relu = nn.ReLU()

    def forward(self, x):
        y = self.b(self.relu(self.a(x)))
        return self.relu(y + (x if self.down is None else self.down(x)))


class ResNet(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.stem, self.layer1, self.layer2 = ConvNorm(c, "stem"), Residual(c, "1", 1), Residual(c, "2", 2)
        self.pool, self.gap, self.fc = nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1), given(nn.Linear(c.fc.shape[1], 10), c.fc, c.fcb)
        self.x, self.y = own(c.x), c.y
        self.x.requires_grad_(False)

    def loss(self):
        x = self.pool(F.relu(self.stem(self.x)))
        x = torch.flatten(self.gap(self.layer2(self.layer1(x))), 1)
        return F.cross_entropy(self.fc(x).float(), self.y)

    def step(self):
        self.train()
        self.loss().backward()
        self.eval()
        with torch.no_grad():
            self.loss()


class PortedResNet(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.last = c.pick("layout", "nchw", "nhwc") == "nhwc"
        self.kernels, self.scales, self.shifts = nn.ParameterDict(), nn.ParameterDict(), nn.ParameterDict()
        for k, v in c.w.items():
            self.kernels[k] = own(v.permute(2, 3, 1, 0).contiguous() if self.last else v)
            self.scales[k], self.shifts[k] = own(c.g[k]), own(c.b[k])
            self.register_buffer("mean" + k, torch.zeros(c.outs[k]))
            self.register_buffer("var" + k, torch.ones(c.outs[k]))
        self.head, self.head_bias = own(c.fc), own(c.fcb)
        x = c.x.permute(0, 2, 3, 1).contiguous() if self.last else c.x
        self.images = own(x)
        self.images.requires_grad_(False)

    def conv(self, x, k, stride=1):
        c, w = self.c, self.kernels[k]
        if self.last:
            x, w = x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1)
        p = w.shape[-1] // 2
        wrong = c.has("pad") and k == "stem" or c.has("same") and stride == 2 and p
        with c.at("pad" if k == "stem" else "same" if stride == 2 and p else "none"):
            if wrong:
                x = F.pad(x, (1, 1, 1, 1), mode="circular") if c.has("pad") else F.pad(x, (0, 1, 0, 1))
                p = 0
            if c.pick("conv", "conv2d", "unfold") == "unfold":
                n, _, h, wide = x.shape
                size = [(s + 2 * p - w.shape[-1]) // stride + 1 for s in (h, wide)]
                y = w.flatten(1) @ F.unfold(x, w.shape[-1], padding=p, stride=stride)
                y = y.view(n, -1, *size)
            else:
                y = F.conv2d(x, w, None, stride, p)
        return y.permute(0, 2, 3, 1) if self.last else y

    def norm(self, x, k):
        c, eps = self.c, 1e-3 if self.c.has("eps") and k != "stem" else 1e-5
        momentum = 0.9 if c.has("momentum") else 0.1
        mean, var = getattr(self, "mean" + k), getattr(self, "var" + k)
        with c.at("eps", "momentum", "ddof") if k != "stem" or not c.has("eps") else c.at("none"):
            if c.pick("bn", "functional", "written") == "functional":
                x = x.permute(0, 3, 1, 2) if self.last else x
                y = F.batch_norm(x, mean, var, self.scales[k], self.shifts[k], self.training, momentum, eps)
                return y.permute(0, 2, 3, 1) if self.last else y
            axes, shape = ((0, 1, 2), (-1,)) if self.last else ((0, 2, 3), (1, -1, 1, 1))
            m, v = mean, var
            if self.training:
                m, v = x.mean(axes), x.var(axes, unbiased=c.has("ddof"))
                n = x.numel() / m.numel()
                with torch.no_grad():
                    mean.copy_(mean * (1 - momentum) + m * momentum)
                    var.copy_(var * (1 - momentum) + v * momentum * (1 if c.has("ddof") else n / (n - 1)))
            if c.pick("bnform", "scale", "plain") == "plain":
                return (x - m.view(shape)) / torch.sqrt(v.view(shape) + eps) * self.scales[k].view(shape) + self.shifts[k].view(shape)
            scale = self.scales[k] * torch.rsqrt(v + eps)
            return x * scale.view(shape) + (self.shifts[k] - m * scale).view(shape)

    def block(self, x, k, stride):
        y = self.norm(self.conv(relu(self.c, self.norm(self.conv(x, k + "a", stride), k + "a")), k + "b"), k + "b")
        short = self.norm(self.conv(x, k + "d", stride), k + "d") if stride > 1 else x
        if self.c.pick("add", "in", "out") == "in" and self.c.pick("bn") == "written":
            y += short
        else:
            y = short + y
        return relu(self.c, y)

    def loss(self):
        c = self.c
        x = relu(c, self.norm(self.conv(self.images, "stem"), "stem"))
        if self.last:
            n, h, w, ch = x.shape
            if c.pick("pool", "max", "amax") == "amax":
                x = x.reshape(n, h // 2, 2, w // 2, 2, ch).amax((2, 4))
            else:
                x = F.max_pool2d(x.permute(0, 3, 1, 2), 2).permute(0, 2, 3, 1)
        else:
            x = F.max_pool2d(x, 2)
        x = self.block(self.block(x, "1", 1), "2", 2)
        x = x.mean((1, 2)) if self.last else x.mean((2, 3)) if c.pick("gap", "mean", "pool") == "mean" else \
            F.avg_pool2d(x, x.shape[-1]).flatten(1)
        logits = torch.addmm(self.head_bias, x, self.head.t()).float()
        return cross_entropy(c, logits, c.y)

    step = ResNet.step


# --- a small UNet with group norms, as diffusion models have it --------------------------------------------

UNET_BUGS = ["eps", "ddof", "corners", "nearest", "order", "circular", "groups", "sum"]


def unet(c):
    ch, n, size = c.r.choice([8, 16]), c.r.choice([1, 2]), c.r.choice([8, 12])
    c.up = c.r.choice(["bilinear", "nearest"])
    c.force("corners", "upsample", "interpolate")
    if c.bug == "corners":
        c.up = "bilinear"
    c.convs = {"in": (3, ch), "down": (ch, 2 * ch), "mid": (2 * ch, 2 * ch), "up": (2 * ch, ch), "skip": (2 * ch, ch), "out": (ch, 3)}
    c.w = {k: c.rand(k, b, a, 3, 3, scale=0.5 / math.sqrt(a)) for k, (a, b) in c.convs.items()}
    c.wb = {k: c.rand(k + "wb", b, scale=0.05) for k, (_, b) in c.convs.items()}
    c.g = {k: c.rand(k + "g", a, scale=0.1, around=1) for k, (a, _) in c.convs.items()}
    c.b = {k: c.rand(k + "b", a, scale=0.1) for k, (a, _) in c.convs.items()}
    c.time, c.timeb = c.rand("time", 2 * ch, 16, scale=0.25), c.rand("timeb", 2 * ch, scale=0.1)
    c.x, c.y = c.rand("x", n, 3, size, size, scale=0.3), c.rand("y", n, 3, size, size)
    c.emb = torch.cat([f(torch.arange(1, n + 1)[:, None] * torch.arange(1, 9) * 0.3) for f in (torch.sin, torch.cos)], 1)
    c.force("ddof", "gn", "written")
    c.force("order", "concat", "cat")
    return UNet, PortedUNet


class NormConv(nn.Module):
    def __init__(self, c, k, stride=1):
        super().__init__()
        a, b = c.convs[k]
        self.norm = given(nn.GroupNorm(4, a), c.g[k], c.b[k])
        self.conv = given(nn.Conv2d(a, b, 3, stride, 1), c.w[k], c.wb[k])
        self.act = nn.SiLU()

    def forward(self, x):
        return self.conv(self.act(self.norm(x)))


class UNet(nn.Module):
    def __init__(self, c):
        super().__init__()
        a, b = c.convs["in"]
        self.conv_in = given(nn.Conv2d(a, b, 3, 1, 1), c.w["in"], c.wb["in"])
        self.down, self.mid, self.up, self.skip, self.out = (
            NormConv(c, k, 2 if k == "down" else 1) for k in ("down", "mid", "up", "skip", "out"))
        self.time = given(nn.Linear(16, c.convs["mid"][0]), c.time, c.timeb)
        self.x, self.y, self.emb = own(c.x), own(c.y), own(c.emb)
        self.upsample = nn.Upsample(scale_factor=2, mode=c.up, **({} if c.up == "nearest" else {"align_corners": False}))
        for t in (self.x, self.y, self.emb):
            t.requires_grad_(False)

    def step(self):
        h = self.conv_in(self.x)
        m = self.down(h)
        m = m + self.time(F.silu(self.emb))[:, :, None, None]
        m = m + self.mid(m)
        u = self.upsample(self.up(m))
        F.mse_loss(self.out(self.skip(torch.cat([u, h], 1))).float(), self.y.float()).backward()


class PortedUNet(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c, self.p = c, nn.ParameterDict()
        for k in c.convs:
            for name, table in (("w", c.w), ("c", c.wb), ("g", c.g), ("b", c.b)):
                self.p[k + name] = own(table[k])
        self.p["time"], self.p["timeb"] = own(c.time.t()), own(c.timeb)
        self.sample, self.target, self.embedding = own(c.x), own(c.y), own(c.emb)
        for t in (self.sample, self.target, self.embedding):
            t.requires_grad_(False)

    def silu(self, x):
        return x * torch.sigmoid(x) if self.c.pick("silu", "silu", "written") == "written" else F.silu(x)

    def norm(self, x, k):
        c, groups, eps = self.c, 4, 1e-5
        here = k == "mid"
        if here:
            groups, eps = 2 if c.has("groups") else 4, 1e-1 if c.has("eps") else eps
        with c.at("eps", "groups", "ddof") if here or c.has("ddof") else c.at("none"):
            if c.pick("gn", "functional", "written") == "functional":
                return F.group_norm(x, groups, self.p[k + "g"], self.p[k + "b"], eps)
            n, ch, h, w = x.shape
            g = x.reshape(n, groups, ch // groups * h * w)
            if c.pick("gnform", "var", "square") == "var":
                v, m = torch.var_mean(g, -1, unbiased=c.has("ddof"), keepdim=True)
            else:
                m = g.mean(-1, keepdim=True)
                v = (g - m).square().sum(-1, keepdim=True) / (g.shape[-1] - c.has("ddof"))
            y = ((g - m) * torch.rsqrt(v + eps)).view(n, ch, h, w)
            return y * self.p[k + "g"].view(1, ch, 1, 1) + self.p[k + "b"].view(1, ch, 1, 1)

    def conv(self, x, k, stride=1):
        c, w, b = self.c, self.p[k + "w"], self.p[k + "c"]
        with c.at("circular") if k == "skip" else c.at("none"):
            if c.has("circular") and k == "skip":
                return F.conv2d(F.pad(x, (1, 1, 1, 1), mode="circular"), w, b, stride)
            if c.pick("bias", "in", "apart") == "apart":
                return F.conv2d(x, w, None, stride, 1) + b[:, None, None]
            return F.conv2d(x, w, b, stride, 1)

    def upsampled(self, x):
        c = self.c
        with c.at("corners", "nearest"):
            if c.up == "bilinear":
                if c.has("nearest"):
                    return F.interpolate(x, scale_factor=2, mode="nearest")
                return F.interpolate(x, size=[2 * s for s in x.shape[2:]], mode="bilinear", align_corners=c.has("corners"))
            if c.has("nearest"):
                return F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
            way = c.pick("upsample", "interpolate", "repeat", "expand")
            if way == "repeat":
                return x.repeat_interleave(2, 2).repeat_interleave(2, 3)
            if way == "expand":
                n, ch, h, w = x.shape
                return x[:, :, :, None, :, None].expand(n, ch, h, 2, w, 2).reshape(n, ch, 2 * h, 2 * w)
            return F.interpolate(x, scale_factor=2, mode="nearest")

    def step(self):
        c, p = self.c, self.p
        h = self.conv(self.sample, "in")
        m = self.conv(self.silu(self.norm(h, "down")), "down", 2)
        t = self.silu(self.embedding) @ p["time"] + p["timeb"]
        m = m + t.unsqueeze(-1).unsqueeze(-1)
        m = self.conv(self.silu(self.norm(m, "mid")), "mid") + m
        u = self.upsampled(self.conv(self.silu(self.norm(m, "up")), "up"))
        with c.at("order"):
            parts = [h, u] if c.has("order") else [u, h]
            if c.pick("concat", "cat", "room") == "cat":
                joined = torch.cat(parts, 1)
            else:
                joined = F.pad(u, (0, 0, 0, 0, 0, h.shape[1])) + F.pad(h, (0, 0, 0, 0, u.shape[1], 0))
        y = self.conv(self.silu(self.norm(joined, "skip")), "skip")
        y = self.conv(self.silu(self.norm(y, "out")), "out").float()
        d = y - self.target.float()
        with c.at("sum"):
            if c.has("sum"):
                loss = d.pow(2).sum() / d.shape[0]
            else:
                loss = d.pow(2).mean() if c.pick("loss", "mean", "sum") == "mean" else (d * d).sum() / d.numel()
        loss.backward()


# --- a stack of dilated causal convolutions with gates, as WaveNet and TCN have it --------------------------

TCN_BUGS = ["side", "dilation", "gate", "slope", "mean", "skip"]


def tcn(c):
    c.ch, c.n, c.t, c.depth = c.r.choice([8, 12]), c.r.choice([2, 3]), c.r.choice([12, 20]), 3
    c.w = {i: c.rand(f"w{i}", 2 * c.ch, c.ch, 3, scale=0.8 / math.sqrt(c.ch)) for i in range(c.depth)}
    c.b = {i: c.rand(f"b{i}", 2 * c.ch, scale=0.1) for i in range(c.depth)}
    c.o = {i: c.rand(f"o{i}", c.ch, c.ch, scale=1 / math.sqrt(c.ch)) for i in range(c.depth)}
    c.dw, c.dwb = c.rand("dw", c.ch, 1, 5, scale=0.5), c.rand("dwb", c.ch, scale=0.1)
    c.first, c.last = c.rand("first", c.ch, 4), c.rand("last", 1, c.ch, scale=1 / math.sqrt(c.ch))
    c.x, c.y = c.rand("x", c.n, c.t, 4), c.ints("y", 2, c.n, c.t).float()
    return TCN, PortedTCN


class TCN(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.front = given(nn.Conv1d(4, c.ch, 1, bias=False), c.first[:, :, None])
        self.gates = nn.ModuleList([given(nn.Conv1d(c.ch, 2 * c.ch, 3, dilation=2 ** i), c.w[i], c.b[i]) for i in range(c.depth)])
        self.outs = nn.ModuleList([given(nn.Conv1d(c.ch, c.ch, 1, bias=False), c.o[i][:, :, None]) for i in range(c.depth)])
        self.depthwise = given(nn.Conv1d(c.ch, c.ch, 5, padding=2, groups=c.ch), c.dw, c.dwb)
        self.end = given(nn.Conv1d(c.ch, 1, 1, bias=False), c.last[:, :, None])
        self.act = nn.LeakyReLU(0.1)
        self.x, self.y = own(c.x), own(c.y)
        self.x.requires_grad_(False), self.y.requires_grad_(False)

    def step(self):
        h = self.front(self.x.transpose(1, 2))
        total = 0
        for i, (gate, out) in enumerate(zip(self.gates, self.outs)):
            z = out(F.glu(gate(F.pad(h, (2 * 2 ** i, 0))), 1))
            h, total = h + z, total + z
        y = self.end(self.act(self.depthwise(total))).squeeze(1)
        F.binary_cross_entropy_with_logits(y.float(), self.y.float()).backward()


class PortedTCN(nn.Module):
    """Channels last: each convolution is a product, or a sum of them over shifts."""
    def __init__(self, c):
        super().__init__()
        self.c, self.p = c, nn.ParameterDict()
        for i in range(c.depth):
            self.p[f"w{i}"] = own(c.w[i].permute(2, 1, 0).contiguous())    # tap, in, out
            self.p[f"b{i}"], self.p[f"o{i}"] = own(c.b[i]), own(c.o[i])
        self.p["dw"], self.p["dwb"] = own(c.dw[:, 0]), own(c.dwb)
        self.p["first"], self.p["last"] = own(c.first), own(c.last)
        self.inputs, self.labels = own(c.x), own(c.y)
        self.inputs.requires_grad_(False), self.labels.requires_grad_(False)

    def causal(self, h, i):
        c, w, b, step = self.c, self.p[f"w{i}"], self.p[f"b{i}"], 2 ** i
        t = h.shape[1]
        with c.at("side", "dilation") if i == 1 else c.at("none"):
            if i == 1 and c.has("dilation"):
                step = 3
            h = F.pad(h, (0, 0, 0, 2 * step) if i == 1 and c.has("side") else (0, 0, 2 * step, 0))
            taps = [h[:, k * step:k * step + t] for k in range(3)]
            if c.pick("taps", "sum", "stack") == "sum":
                return taps[0] @ w[0] + taps[1] @ w[1] + taps[2] @ w[2] + b
            return torch.cat(taps, -1) @ w.reshape(-1, w.shape[-1]) + b

    def step(self):
        c, p = self.c, self.p
        h = F.linear(self.inputs, p["first"])
        each = []
        for i in range(c.depth):
            a, g = self.causal(h, i).chunk(2, -1)
            with c.at("gate") if i == 0 else c.at("none"):
                if c.has("gate") and i == 0:
                    a, g = g, a
                z = a * torch.sigmoid(g)
            z = F.linear(z, p[f"o{i}"])
            each.append(z)
            with c.at("skip") if i == 1 else c.at("none"):
                h = h + (0.5 * z if c.has("skip") and i == 1 else z)
        total = torch.stack(each).sum(0) if c.pick("total", "stack", "sum") == "stack" else sum(each)
        t = total.shape[1]
        if c.pick("depthwise", "shift", "unfold") == "shift":
            padded = F.pad(total, (0, 0, 2, 2))
            y = sum(padded[:, k:k + t] * p["dw"][:, k] for k in range(5)) + p["dwb"]
        else:
            y = torch.einsum("ntck,ck->ntc", F.pad(total, (0, 0, 2, 2)).unfold(1, 5, 1), p["dw"]) + p["dwb"]
        with c.at("slope"):
            slope = 0.01 if c.has("slope") else 0.1
            y = torch.where(y > 0, y, y * slope) if c.pick("leaky", "where", "max") == "where" else torch.maximum(y, slope * y)
        y = (y @ p["last"].t())[..., 0].float()
        labels = self.labels.float()
        with c.at("mean"):
            each = torch.clamp(y, min=0) - y * labels + torch.log1p(torch.exp(-y.abs())) if c.pick("bce", "written", "f") == "written" else \
                F.binary_cross_entropy_with_logits(y, labels, reduction="none")
            loss = each.sum(1).mean() if c.has("mean") else each.mean()
        loss.backward()
