"""Small networks with random weights, right and with one fault each; plain torch. A fault is a word that models.py and
the ports alone know, and a place: the module in which it is. What is kept aside, KEPT, taught nobody anything."""
import torch
import torch.nn.functional as F
from torch import nn

import skips
import speech

HIDDEN, HEADS, LAYERS, TOKENS = 64, 4, 3, 12


class Norm(nn.Module):
    def __init__(self, n, eps=1e-6):
        super().__init__()
        self.weight, self.eps = nn.Parameter(1 + 0.2 * torch.randn(n)), eps

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


def rotate(x, cos, sin, interleaved):
    if interleaved:
        y = torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)
    else:
        a, b = x.chunk(2, -1)
        y = torch.cat((-b, a), -1)
    return x * cos + y * sin


class Attention(nn.Module):
    def __init__(self, bias, out_bias, causal, rope, kv=HEADS, packed=False):
        super().__init__()
        d = HIDDEN // HEADS
        if packed:
            self.qkv = nn.Linear(HIDDEN, 3 * HIDDEN, bias=bias)
        else:
            self.q, self.k, self.v = (nn.Linear(HIDDEN, n * d, bias=bias) for n in (HEADS, kv, kv))
        self.o = nn.Linear(HIDDEN, HIDDEN, bias=out_bias)
        self.kv, self.causal, self.rope, self.fault = kv, causal, rope, None

    def forward(self, x):
        b, t, _ = x.shape
        made = self.qkv(x).chunk(3, -1) if hasattr(self, "qkv") else (self.q(x), self.k(x), self.v(x))
        q, k, v = (y.view(b, t, -1, HIDDEN // HEADS).transpose(1, 2) for y in made)
        if self.rope:
            d = HIDDEN // HEADS
            angle = torch.arange(t).float()[:, None] * 10000 ** (-torch.arange(0, d, 2).float() / d)
            angle = torch.cat((angle, angle), -1)
            k = rotate(k, angle.cos(), angle.sin(), self.fault == "rope")
            angle = angle + angle[1] if self.fault == "shift" else angle
            q = rotate(q, angle.cos(), angle.sin(), self.fault == "rope")
        k, v = (y.repeat_interleave(HEADS // self.kv, 1) for y in (k, v))
        s = q @ k.transpose(2, 3) * (HIDDEN // HEADS) ** (-0.5 if self.fault != "scale" else -0.25)
        if self.causal and self.fault != "mask":
            s = s + torch.full((t, t), -1e9).triu(1)
        return self.o((s.softmax(-1) @ v).transpose(1, 2).reshape(b, t, HIDDEN))


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.up = nn.Linear(HIDDEN, 160, bias=False), nn.Linear(HIDDEN, 160, bias=False)
        self.down = nn.Linear(160, HIDDEN, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Mlp(nn.Module):
    def __init__(self, tanh=False):
        super().__init__()
        self.tanh = tanh
        self.fc1, self.fc2, self.fault = nn.Linear(HIDDEN, 160), nn.Linear(160, HIDDEN), None

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x), approximate="tanh" if self.tanh != (self.fault == "gelu") else "none"))


class Block(nn.Module):
    def __init__(self, norm, attn, mlp, post=False):
        super().__init__()
        self.norm1, self.attn, self.norm2, self.mlp, self.post = norm(), attn(), norm(), mlp(), post
        self.lost = False

    def forward(self, x):
        if self.post:
            x = self.norm1(x + self.attn(x))
            return self.norm2(x + self.mlp(x))
        x = self.attn(self.norm1(x)) + (0 if self.lost else x)
        return x + self.mlp(self.norm2(x))


class Decoder(nn.Module):
    def __init__(self, bias):
        super().__init__()
        self.embed = nn.Embedding(100, HIDDEN)
        self.layers = nn.ModuleList(Block(lambda: Norm(HIDDEN), lambda: Attention(bias, False, True, True, 2), Gated) for _ in range(LAYERS))
        self.norm, self.head = Norm(HIDDEN), nn.Linear(HIDDEN, 100, bias=False)

    def forward(self, ids):
        x = self.embed(ids)
        for f in self.layers:
            x = f(x)
        return self.head(self.norm(x))


class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.place, self.norm = nn.Embedding(100, HIDDEN), nn.Embedding(TOKENS, HIDDEN), nn.LayerNorm(HIDDEN)
        self.layers = nn.ModuleList(Block(lambda: nn.LayerNorm(HIDDEN), lambda: Attention(True, True, False, False), Mlp, True) for _ in range(LAYERS))
        self.pool = nn.Linear(HIDDEN, HIDDEN)

    def forward(self, ids):
        x = self.norm(self.embed(ids) + self.place(torch.arange(ids.shape[1])))
        for f in self.layers:
            x = f(x)
        return torch.tanh(self.pool(x[:, 0]))


class Vit(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, HIDDEN, 4, 4)
        self.cls, self.place = nn.Parameter(torch.randn(1, 1, HIDDEN)), nn.Parameter(torch.randn(1, 17, HIDDEN))
        self.layers = nn.ModuleList(Block(lambda: nn.LayerNorm(HIDDEN), lambda: Attention(True, True, False, False), Mlp) for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(HIDDEN), nn.Linear(HIDDEN, 10)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.cls.expand(x.shape[0], -1, -1), x), 1) + self.place
        for f in self.layers:
            x = f(x)
        return self.head(self.norm(x)[:, 0])


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.place = nn.Embedding(100, HIDDEN), nn.Embedding(TOKENS, HIDDEN)
        self.layers = nn.ModuleList(
            Block(lambda: nn.LayerNorm(HIDDEN), lambda: Attention(True, True, True, False, packed=True), lambda: Mlp(True)) for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(HIDDEN), nn.Linear(HIDDEN, 100, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids):
        x = self.embed(ids) + self.place(torch.arange(ids.shape[1]))
        for f in self.layers:
            x = f(x)
        return self.head(self.norm(x))


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.b1 = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.c2, self.b2 = nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.c3, self.fc = nn.Conv2d(16, 24, 3, padding=1), nn.Linear(24, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.b1(self.c1(x))), 2)
        x = F.silu(self.b2(self.c2(x)))
        return self.fc(F.gelu(self.c3(x)).mean((2, 3)))


class Mixing(nn.Module):
    """Of a mixer: what mixes tokens, then what mixes channels."""
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(HIDDEN), nn.LayerNorm(HIDDEN)
        self.up, self.down, self.mlp, self.fault = nn.Linear(16, 48), nn.Linear(48, 16), Mlp(), None

    def forward(self, x):
        y = self.norm1(x).transpose(1, 2)
        if self.fault == "flip":
            y = y.flip(2)
        x = x + self.down(F.gelu(self.up(y))).transpose(1, 2)
        return x * 0.9 + self.mlp(self.norm2(x)) if self.fault == "residual" else x + self.mlp(self.norm2(x))


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, HIDDEN, 4, 4)
        self.layers = nn.ModuleList(Mixing() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(HIDDEN), nn.Linear(HIDDEN, 10)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        for f in self.layers:
            x = f(x)
        return self.head(self.norm(x).mean(1))


class Stage(nn.Module):
    """Of a network of dilated convolutions that see the past alone."""
    def __init__(self, by):
        super().__init__()
        self.conv, self.norm, self.mix = nn.Conv1d(HIDDEN, HIDDEN, 3, dilation=by), nn.GroupNorm(8, HIDDEN), nn.Conv1d(HIDDEN, HIDDEN, 1)
        self.fault = None

    def forward(self, x):
        by = 2 * self.conv.dilation[0]
        y = self.norm(self.conv(F.pad(x, (by // 2, by - by // 2) if self.fault == "future" else (by, 0))))
        return x + self.mix(F.leaky_relu(y, 0.1) if self.fault == "leaky" else F.relu(y))


class Tcn(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(100, HIDDEN)
        self.layers = nn.ModuleList(Stage(2 ** i) for i in range(LAYERS))
        self.head = nn.Linear(HIDDEN, 100)

    def forward(self, ids):
        x = self.embed(ids).transpose(1, 2)
        for f in self.layers:
            x = f(x)
        return self.head(x.transpose(1, 2))


class Experts(nn.Module):
    """Every expert runs, and a token takes two of them, by weights that add up to one."""
    def __init__(self):
        super().__init__()
        self.route, self.fault = nn.Linear(HIDDEN, 4, bias=False), None
        self.some = nn.ModuleList(Gated() for _ in range(4))

    def forward(self, x):
        p, at = self.route(x).softmax(-1).topk(2, -1)
        p = p if self.fault == "unscaled" else p / p.sum(-1, keepdim=True)
        share = torch.zeros(*x.shape[:-1], 4).scatter(-1, at, p)
        return sum(share[..., i:i + 1] * f(x) for i, f in enumerate(self.some))


class Windowed(nn.Module):
    """Attention to the last five tokens, of q and k that are normed, with a bias for each distance and capped scores."""
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(HIDDEN, HIDDEN, bias=False) for _ in range(4))
        self.qnorm, self.knorm = Norm(HIDDEN // HEADS), Norm(HIDDEN // HEADS)
        self.far, self.fault = nn.Embedding(5, HEADS), None

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (f(x).view(b, t, HEADS, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        q, k = q if self.fault == "unnormed" else self.qnorm(q), self.knorm(k)
        back = torch.arange(t)[:, None] - torch.arange(t)
        cap = 3 if self.fault == "cap" else 5
        s = cap * torch.tanh(q @ k.transpose(2, 3) / (HIDDEN // HEADS) ** 0.5 / cap)
        s = s + self.far((back + (self.fault == "distance")).clamp(0, 4)).permute(2, 0, 1)
        s = s.masked_fill((back < 0) | (back >= (6 if self.fault == "window" else 5)), -1e9)
        return self.o((s.softmax(-1) @ v).transpose(1, 2).reshape(b, t, HIDDEN))


class Moe(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(100, HIDDEN)
        self.layers = nn.ModuleList(Block(lambda: Norm(HIDDEN), Windowed, Experts) for _ in range(LAYERS))
        self.norm, self.head = Norm(HIDDEN), nn.Linear(HIDDEN, 100, bias=False)

    def forward(self, ids):
        x = self.embed(ids) * HIDDEN ** 0.5
        for f in self.layers:
            x = f(x)
        return self.head(self.norm(x))


class Residual(nn.Module):
    """A stage of a U-Net; "up" takes what the way down left beside what it is given."""
    def __init__(self, n, to, way):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(8, n), nn.Conv2d(n, to, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(8, to), nn.Conv2d(to, to, 3, padding=1)
        self.time, self.skip, self.way, self.fault = nn.Linear(32, to), nn.Conv2d(n, to, 1), way, None

    def forward(self, x, time, other=None):
        if self.way == "up":
            x = F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=self.fault == "corners")
            x = torch.cat((other, x) if self.fault == "order" else (x, other), 1)
        y = self.conv1(F.silu(self.norm1(x))) + self.time(time)[:, :, None, None]
        y = self.conv2(F.silu(self.norm2(y))) + self.skip(x)
        return (F.max_pool2d if self.fault == "pool" else F.avg_pool2d)(y, 2) if self.way == "down" else y


class Unet(nn.Module):
    def __init__(self):
        super().__init__()
        self.into, self.lift = nn.Conv2d(3, 16, 3, padding=1), nn.Linear(16, 32)
        self.layers = nn.ModuleList((Residual(16, 16, "down"), Residual(16, 32, "down"), Residual(32, 32, ""),
                                     Residual(48, 16, "up"), Residual(32, 16, "up")))
        self.out, self.fault = nn.Conv2d(16, 3, 3, padding=1), None

    def forward(self, x):
        angle = x[:, 0, 0, 0].abs()[:, None] * 100 * 10000 ** (-torch.arange(8) / 8)
        pair = angle.sin(), angle.cos()
        time = F.silu(self.lift(torch.cat(pair[::-1] if self.fault == "swapped" else pair, -1)))
        first = self.into(x)
        second = self.layers[0](first, time)
        x = self.layers[2](self.layers[1](second, time), time)
        return self.out(self.layers[4](self.layers[3](x, time, second), time, first))


MODELS = {"llama": lambda: Decoder(False), "qwen": lambda: Decoder(True), "bert": Bert, "vit": Vit, "cnn": Cnn, "gpt": Gpt, "mixer": Mixer, "tcn": Tcn,
          "moe": Moe, "unet": Unet, **skips.MODELS, **speech.MODELS}


def make(name, seed=0):
    torch.manual_seed(seed)
    m = MODELS[name]().eval()
    for f in m.modules():
        if isinstance(f, nn.BatchNorm2d):
            f.running_mean.normal_(0, 0.3)
            f.running_var.uniform_(0.5, 2)
        for p in ("weight", "bias"):
            if isinstance(f, (nn.LayerNorm, nn.BatchNorm2d)):
                getattr(f, p).data.add_(0.2 * torch.randn_like(getattr(f, p)))
    x = torch.randint(0, 100, (2, TOKENS)) if name not in ("vit", "cnn", "mixer", "unet", *skips.MODELS, *speech.MODELS) else torch.randn(2, 3, *((8, 8) if name == "cnn" else (16, 16)))
    return m, x


class Half(nn.Module):
    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, x):
        return F.linear(x.half().float(), self.f.weight.half().float(), self.f.bias).half().float()


def turn(w):
    """Rows of each head, halves to neighbours."""
    d = HIDDEN // HEADS
    return w.view(-1, 2, d // 2, *w.shape[1:]).transpose(1, 2).reshape(w.shape).clone()


@torch.no_grad()
def break_it(m, name, fault):
    """Put the fault in; the module in which it is, or None where this network cannot have it."""
    if name == "cnn":
        if fault == "eps":
            m.b2.eps = 1e-1
            return "b2|silu"
        if fault == "padding":
            m.c3.padding_mode = "reflect"
            m.c3._reversed_padding_repeated_twice = [1, 1, 1, 1]
            return "c3"
        if fault == "bias":
            m.c2.bias.zero_()
            return "c2|b2"
        if fault == "act":
            m.c3.gain = 1.02
            m.c3.register_forward_hook(lambda *a: a[2] * 1.02)
            return "c3|gelu|fc"
        if fault == "turned":
            m.c2.weight.data = m.c2.weight.flip(2, 3)
            return "c2|b2"
        return None
    if name in skips.MODELS:
        return skips.break_it(m, name, fault)
    if name in speech.MODELS:
        return speech.break_it(m, name, fault)
    if name == "unet":
        at = {"corners": 3, "order": 3, "pool": 1, "groups": 1, "eps": 2, "bias": 3, "doubled": 4, "padding": 2}.get(fault)
        if fault == "swapped":
            m.fault = fault
            return "lift|cat"
        if at is None:
            return None
        block = m.layers[at]
        if fault == "groups":
            block.norm2 = nn.GroupNorm(4, 32)
            block.norm2.load_state_dict(make(name)[0].layers[1].norm2.state_dict())
        elif fault == "eps":
            block.norm1.eps = 1e-1
        elif fault == "bias":
            block.conv1.bias.zero_()
        elif fault == "doubled":
            block.time.weight.mul_(2)
        elif fault == "padding":
            block.conv2.padding_mode = "reflect"
            block.conv2._reversed_padding_repeated_twice = [1, 1, 1, 1]
        else:
            block.fault = fault
        return "layers.%d" % at
    block = m.layers[1]
    if name == "moe":
        if fault == "eps":
            block.norm2.eps = 1.0
        elif fault == "unscaled":
            block.mlp.fault = fault
        elif fault in ("cap", "distance", "window", "unnormed"):
            block.attn.fault = fault
        elif fault == "expert":
            block.mlp.some = nn.ModuleList(block.mlp.some[i] for i in (0, 2, 1, 3))
        elif fault == "turned":
            block.attn.o.weight.data = block.attn.o.weight.t().clone()
        else:
            return None
        return "layers.1"
    if name in ("mixer", "tcn"):
        norm, wide = (block.norm2, block.up) if name == "mixer" else (block.norm, block.conv)
        if fault == "eps":
            norm.eps = 1e-2
        elif fault == "bias":
            wide.bias.zero_()
        elif fault == "gain":
            norm.weight.mul_(1.03)
        elif fault == ("flip" if name == "mixer" else "future") or fault == ("residual" if name == "mixer" else "leaky"):
            block.fault = fault
        elif fault == "dilation" and name == "tcn":
            block.conv.dilation = (3,)
        else:
            return None
        return "layers.1"
    rope, biased, plain = block.attn.rope, block.attn.o.bias is not None or name == "qwen", name in ("bert", "vit", "gpt")
    if fault == "eps":
        block.norm2.eps = 1e-2
        return "layers.1.norm2"
    if fault in ("rope", "shift") and rope or fault == "mask" and block.attn.causal or fault == "scale":
        block.attn.fault = fault
        return "layers.1.attn"
    if fault == "rows" and rope:
        block.attn.k.weight.data = turn(block.attn.k.weight.data)
        return "layers.1.attn.k"
    if fault == "bias" and biased:
        f = block.attn.v if rope else block.mlp.fc1
        f.bias.zero_()
        return "layers.1.attn.v" if rope else "layers.1.mlp.fc1"
    if fault == "gelu" and plain:
        block.mlp.fault = "gelu"
        return "layers.1.mlp"
    if fault == "half":
        block.mlp.down = Half(block.mlp.down) if rope else None
        if not rope:
            del block.mlp.down
            block.mlp.fc2 = Half(block.mlp.fc2)
        return "layers.1.mlp." + ("down" if rope else "fc2")
    if fault == "swap" and rope:
        block.mlp.gate, block.mlp.up = block.mlp.up, block.mlp.gate
        return "layers.1.mlp.gate"
    if fault == "lost" and not block.post:
        block.lost = True
        return "layers.1.attn"
    if fault == "turned":
        block.attn.o.weight.data = block.attn.o.weight.t().clone()
        return "layers.1.attn.o"
    return None


KEPT = {"nets": ["gpt", "mixer", "tcn", "moe", "unet", *skips.MODELS, *speech.MODELS], "faults": ["lost", "shift", "turned", "flip", "future", "residual", "leaky", "gain", "dilation",
                                                         "unscaled", "cap", "distance", "window", "unnormed", "expert",
                                                         "corners", "order", "pool", "groups", "doubled", "swapped", *skips.FAULTS]}
FAULTS = ["eps", "rope", "mask", "scale", "rows", "bias", "gelu", "half", "swap", "padding", "act"] + KEPT["faults"]
