"""Networks that look at pictures."""
import torch
import torch.nn.functional as F
import torchvision
from torch import nn
from torchvision.models.convnext import CNBlockConfig
from torchvision.models.googlenet import Inception
from torchvision.models.squeezenet import Fire

from zoo import Net


class Residual(nn.Module):
    def __init__(self, cin, c, stride, deep):
        super().__init__()
        sizes = [(cin, c // 4, 1, 1), (c // 4, c // 4, 3, stride), (c // 4, c, 1, 1)] if deep \
            else [(cin, c, 3, stride), (c, c, 3, 1)]
        self.convs = nn.ModuleList(nn.Conv2d(a, b, k, s, k // 2, bias=False)
                                   for a, b, k, s in sizes)
        self.norms = nn.ModuleList(nn.BatchNorm2d(b) for _, b, _, _ in sizes)
        self.short = None
        if stride > 1 or cin != c:
            self.short = nn.Sequential(nn.Conv2d(cin, c, 1, stride, bias=False),
                                       nn.BatchNorm2d(c))

    def forward(self, x):
        y = x
        for i, (conv, norm) in enumerate(zip(self.convs, self.norms)):
            y = norm(conv(y))
            if i + 1 < len(self.convs):
                y = F.relu(y)
        y += x if self.short is None else self.short(x)
        return F.relu(y, inplace=True)


class ResNet(Net):
    can_recompute = True

    def __init__(self, r):
        super().__init__()
        w = r.choice([8, 12, 16])
        self.n, self.px, self.classes = r.choice([3, 4, 6]), r.choice([20, 24, 32]), 7
        deep = r.random() < 0.4
        self.stem = nn.Conv2d(3, w, r.choice([3, 5, 7]), 2, 2, bias=False)
        self.norm = nn.BatchNorm2d(w)
        sizes, cin = [], w
        for stage in range(r.choice([2, 3])):
            for i in range(r.choice([1, 2, 2])):
                sizes.append((cin, w << stage, 2 if stage and not i else 1))
                cin = w << stage
        self.blocks = nn.ModuleList(Residual(*s, deep) for s in sizes)
        self.head = nn.Linear(cin, self.classes)
        self.smooth = r.choice([0.0, 0.1])

    def batch(self, r):
        return torch.randn(self.n, 3, self.px, self.px), torch.randint(self.classes, (self.n,))

    def forward(self, x, y):
        x = F.max_pool2d(F.relu(self.norm(self.stem(x))), 3, 2, 1)
        for b in self.blocks:
            x = self.segment(b, x)
        x = torch.flatten(F.adaptive_avg_pool2d(x, (1, 1)), 1)
        return F.cross_entropy(self.head(x), y, label_smoothing=self.smooth)


class Vgg(Net):
    def __init__(self, r):
        super().__init__()
        w, self.px, self.n = r.choice([8, 12]), r.choice([16, 24]), r.choice([3, 5])
        layers, c = [], r.choice([1, 3])
        self.c = c
        act = r.choice([nn.ReLU, lambda: nn.LeakyReLU(0.1), nn.ELU])
        norm = r.choice([nn.BatchNorm2d, lambda k: nn.GroupNorm(4, k), None])
        for stage in range(3):
            for _ in range(r.choice([1, 2])):
                layers.append(nn.Conv2d(c, w << stage, 3, padding=1))
                c = w << stage
                layers += ([norm(c)] if norm else []) + [act()]
            layers.append(r.choice([nn.MaxPool2d, nn.AvgPool2d])(2))
        self.features = nn.Sequential(*layers)
        p, h = r.choice([0.0, 0.3, 0.5]), 32
        self.head = nn.Sequential(nn.Linear(c * (self.px // 8) ** 2, h), act(), nn.Dropout(p),
                                  nn.Linear(h, h), act(), nn.Dropout(p), nn.Linear(h, 5))

    def batch(self, r):
        return torch.randn(self.n, self.c, self.px, self.px), torch.randint(5, (self.n,))

    def forward(self, x, y):
        x = self.features(x)
        return F.nll_loss(F.log_softmax(self.head(x.flatten(1)), dim=1), y)


def pictures(net):
    return torch.randn(net.n, 3, net.px, net.px), torch.randint(net.classes, (net.n,))


class Library(Net):
    """One of torchvision's, small."""
    classes = 7

    def batch(self, r):
        return pictures(self)

    def forward(self, x, y):
        return F.cross_entropy(self.body(x), y)


class MobileNet(Net):
    """Separable convolutions with squeeze and excitation, as MobileNet v3."""

    def __init__(self, r):
        super().__init__()
        self.n, self.px, self.classes = r.choice([3, 5]), r.choice([16, 24]), 6
        c = r.choice([8, 12])
        self.stem, self.n0 = nn.Conv2d(3, c, 3, 2, 1, bias=False), nn.BatchNorm2d(c)
        self.act = r.choice([nn.Hardswish(), nn.ReLU6(), nn.SiLU()])
        self.blocks = nn.ModuleList()
        for i in range(r.choice([2, 3, 4])):
            e = c * r.choice([2, 3])
            self.blocks.append(nn.ModuleDict({
                "up": nn.Conv2d(c, e, 1, bias=False), "n1": nn.BatchNorm2d(e, eps=1e-3),
                "deep": nn.Conv2d(e, e, r.choice([3, 5]), 1, "same", groups=e, bias=False),
                "n2": nn.BatchNorm2d(e), "a": nn.Conv2d(e, 8, 1), "b": nn.Conv2d(8, e, 1),
                "down": nn.Conv2d(e, c, 1, bias=False), "n3": nn.BatchNorm2d(c)}))
        self.head = nn.Linear(c, self.classes)

    def batch(self, r):
        return pictures(self)

    def forward(self, x, y):
        x = self.act(self.n0(self.stem(x)))
        for b in self.blocks:
            z = self.act(b["n1"](b["up"](x)))
            z = self.act(b["n2"](b["deep"](z)))
            s = F.relu(b["a"](F.adaptive_avg_pool2d(z, 1)))
            z = z * F.hardsigmoid(b["b"](s))
            x = x + b["n3"](b["down"](z))
        return F.cross_entropy(self.head(x.mean([2, 3])), y)


class UNet(Net):
    """Down and up again with skips; each pixel is in or out."""

    def __init__(self, r):
        super().__init__()
        c, self.n, self.px = r.choice([6, 8]), r.choice([2, 3]), r.choice([16, 24])
        norm = r.choice([lambda k: nn.GroupNorm(2, k), lambda k: nn.InstanceNorm2d(k, affine=True),
                         nn.BatchNorm2d])
        act = r.choice([nn.ReLU, nn.SiLU, lambda: nn.LeakyReLU(0.1), nn.ReLU])

        def double(a, b):
            return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), norm(b), act(),
                                 nn.Conv2d(b, b, 3, padding=1), norm(b), act())

        depth = r.choice([2, 3])
        self.down = nn.ModuleList(double(3 if i == 0 else c << i - 1, c << i)
                                  for i in range(depth))
        self.turn = r.random() < 0.6
        self.ups = nn.ModuleList(
            nn.ConvTranspose2d(c << i, c << i - 1, 2, 2) if self.turn else
            nn.Conv2d(c << i, c << i - 1, 1) for i in range(depth - 1, 0, -1))
        self.merge = nn.ModuleList(double(c << i, c << i - 1) for i in range(depth - 1, 0, -1))
        self.head = nn.Conv2d(c, 1, 1)
        self.dice = r.random() < 0.5

    def batch(self, r):
        return (torch.randn(self.n, 3, self.px, self.px),
                (torch.rand(self.n, 1, self.px, self.px) > 0.6).float())

    def forward(self, x, y):
        kept = []
        for i, block in enumerate(self.down):
            x = block(F.max_pool2d(x, 2) if i else x)
            kept.append(x)
        kept.pop()
        for up, merge in zip(self.ups, self.merge):
            x = up(x) if self.turn else up(F.interpolate(x, scale_factor=2, mode="nearest"))
            x = merge(torch.cat([kept.pop(), x], 1))
        y_hat = self.head(x)
        loss = F.binary_cross_entropy_with_logits(y_hat, y)
        if self.dice:
            p = torch.sigmoid(y_hat)
            loss = loss + 1 - (2 * (p * y).sum() + 1) / (p.sum() + y.sum() + 1)
        return loss


class SqueezeNet(Net):
    def __init__(self, r):
        super().__init__()
        c, self.n, self.px, self.classes = r.choice([8, 12]), 3, r.choice([20, 28]), 6
        layers = [nn.Conv2d(3, c, 3, stride=2), nn.ReLU(inplace=True),
                  nn.MaxPool2d(3, 2, ceil_mode=True)]
        for i in range(r.choice([2, 3, 4])):
            e = c + 4 * i
            layers.append(Fire(c, 6, e // 2, e // 2))
            c = e // 2 * 2
        self.body = nn.Sequential(*layers, nn.Dropout(r.choice([0.0, 0.5])),
                                  nn.Conv2d(c, self.classes, 1), nn.ReLU(inplace=True),
                                  nn.AdaptiveAvgPool2d((1, 1)))

    def batch(self, r):
        return pictures(self)

    def forward(self, x, y):
        return F.cross_entropy(torch.flatten(self.body(x), 1), y)


class ShuffleNet(Library):
    def __init__(self, r):
        super().__init__()
        self.n, self.px = r.choice([3, 4]), r.choice([24, 32])
        w = r.choice([8, 12])
        self.body = torchvision.models.ShuffleNetV2(
            [r.choice([1, 2]), 2, 1], [8, w, 2 * w, 2 * w, 32], num_classes=self.classes)


class DenseNet(Library):
    def __init__(self, r):
        super().__init__()
        self.n, self.px = r.choice([3, 4]), r.choice([32, 40])
        self.body = torchvision.models.DenseNet(
            r.choice([4, 6]), (2, r.choice([2, 3])), 8, bn_size=2, num_classes=self.classes,
            drop_rate=r.choice([0.0, 0.2]))


class Swin(Library):
    """Windows of attention, shifted (masked), with relative position bias."""

    def __init__(self, r):
        super().__init__()
        self.n, self.px = 2, r.choice([24, 32])
        d = r.choice([8, 12])
        self.body = torchvision.models.SwinTransformer(
            [4, 4], d, [2, r.choice([1, 2])], [2, 4], [3, 3], mlp_ratio=2.0,
            stochastic_depth_prob=0.0, num_classes=self.classes)


class Vit(Library):
    """torchvision's: patches, a class token, multi_head_attention_forward."""
    steps = ("none", "none", "sgd")

    def __init__(self, r):
        super().__init__()
        self.n, self.px = r.choice([2, 3]), 24
        d = r.choice([16, 24])
        self.body = torchvision.models.VisionTransformer(
            24, r.choice([6, 8]), r.choice([2, 3, 4]), r.choice([2, 4]), d, 2 * d,
            dropout=r.choice([0.0, 0.0, 0.1]), num_classes=self.classes)
        nn.init.normal_(self.body.heads.head.weight, std=0.2)
        nn.init.normal_(self.body.class_token, std=0.3)


class ConvNext(Library):
    def __init__(self, r):
        super().__init__()
        self.n, self.px = 3, r.choice([24, 32])
        c = r.choice([8, 12])
        self.body = torchvision.models.ConvNeXt(
            [CNBlockConfig(c, 2 * c, r.choice([1, 2])), CNBlockConfig(2 * c, None, 1)],
            stochastic_depth_prob=0.0, layer_scale=0.2, num_classes=self.classes)
        for p in self.body.parameters():   # torchvision's are too small to tell anything
            if p.dim() > 1:
                nn.init.normal_(p, std=p[0].numel() ** -0.5)


class Inceptions(Net):
    """Branches of convolutions side by side, as GoogLeNet."""

    def __init__(self, r):
        super().__init__()
        self.n, self.px, self.classes = r.choice([4, 6]), r.choice([16, 20]), 5
        c = 8
        self.stem = nn.Conv2d(3, c, 3, 2, 1)
        self.blocks = nn.ModuleList()
        for _ in range(r.choice([1, 2])):
            a, b, d, e = (r.choice([4, 6]) for _ in range(4))
            self.blocks.append(Inception(c, a, 4, b, 3, d, e))
            c = a + b + d + e
        self.head = nn.Linear(c, self.classes)

    def batch(self, r):
        return torch.randn(self.n, 3, self.px, self.px), torch.rand(self.n, self.classes)

    def forward(self, x, y):
        x = F.elu(self.stem(x))
        for b in self.blocks:
            x = b(x)
        x = self.head(F.avg_pool2d(x, x.shape[-1]).flatten(1))
        return F.kl_div(F.log_softmax(x, -1), F.softmax(y * 3, -1), reduction="batchmean")


class Mixer(Net):
    """Patches mixed by linear layers along places and along channels."""

    def __init__(self, r):
        super().__init__()
        self.n, self.px, self.classes = r.choice([3, 4]), 16, 9
        d, p = r.choice([16, 24]), r.choice([4, 8])
        t = (16 // p) ** 2
        self.cut = nn.Conv2d(3, d, p, p)
        self.layers = nn.ModuleList(nn.ModuleDict({
            "n1": nn.LayerNorm(d), "t1": nn.Linear(t, 2 * t), "t2": nn.Linear(2 * t, t),
            "n2": nn.LayerNorm(d), "c1": nn.Linear(d, 2 * d), "c2": nn.Linear(2 * d, d)})
            for _ in range(r.choice([2, 3, 4])))
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, self.classes)
        self.act = r.choice([nn.GELU(), nn.GELU("tanh"), nn.Mish()])
        self.weighted = r.random() < 0.5

    def batch(self, r):
        return (*pictures(self), 0.5 + torch.rand(self.classes))

    def forward(self, x, y, w):
        x = self.cut(x).flatten(2).transpose(1, 2)
        for m in self.layers:
            x = x + m["t2"](self.act(m["t1"](m["n1"](x).transpose(1, 2)))).transpose(1, 2)
            x = x + m["c2"](self.act(m["c1"](m["n2"](x))))
        x = self.head(self.norm(x).mean(1))
        return F.cross_entropy(x, y, weight=w if self.weighted else None)


NETS = {"resnet": ("teach", ResNet), "unet": ("teach", UNet), "squeezenet": ("teach", SqueezeNet),
        "vit": ("teach", Vit), "mixer": ("teach", Mixer), "inceptions": ("teach", Inceptions),
        "vgg": ("report", Vgg), "mobilenet": ("report", MobileNet),
        "shufflenet": ("report", ShuffleNet), "densenet": ("report", DenseNet),
        "swin": ("report", Swin), "convnext": ("report", ConvNext)}
