"""Networks of sound.py that are copies on all ranks: gradients are reduced in the ways of many trainers."""
import contextlib

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from sound_net import AVG, LOW, Net, Total, take


def backward(net, loss):
    net.losses.append(loss.item())
    loss.backward()


class Reader(nn.Module):
    """torch's own layers; what is later has -inf."""

    def __init__(self, words, d, layers=2):
        super().__init__()
        self.embed = nn.Embedding(words, d)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(d, 2, 2 * d, 0.0, batch_first=True, norm_first=True)
                                    for _ in range(layers))
        self.head = nn.Linear(d, words)

    def forward(self, ids):
        x = self.embed(ids)
        future = torch.full((ids.shape[1],) * 2, float("-inf")).triu(1)
        for layer in self.layers:
            x = layer(x, src_mask=future)
        return self.head(x)


class Ddp(Net):
    """DistributedDataParallel itself, whose collectives no recorder sees; AdamW."""
    V, STEPS, INSIDE = 12, 3, True

    def build(self):
        self.model = self.of(Reader(self.V, 8))
        self.ddp = DistributedDataParallel(self.model)
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=1e-2)

    def step(self, s):
        ids = self.ids(s, self.V, 3, 7)
        out = self.ddp(ids[:, :-1])
        backward(self, F.cross_entropy(out.reshape(-1, self.V), ids[:, 1:].reshape(-1)))

    def update(self, s):
        self.opt.step()


class Nosync(Net):
    """The same with no_sync for all micro-batches but the last, norms of each rank's own batch, whose buffers are
    those of rank 0; SGD with momentum."""
    RANKS, M = 3, 3

    def build(self):
        c = 6
        self.model = self.of(nn.Sequential(
            nn.Conv2d(3, c, 3, padding=1), nn.BatchNorm2d(c), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(c, c, 3, padding=1, bias=False), nn.BatchNorm2d(c), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
            nn.Flatten(), nn.Linear(c, 5)))
        self.ddp = DistributedDataParallel(self.model)
        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9, nesterov=True)

    def step(self, s):
        for m in range(self.M):
            with self.ddp.no_sync() if m < self.M - 1 else contextlib.nullcontext():
                out = self.ddp(self.data(s + 10 * m, 4, 3, 8, 8))
                backward(self, F.cross_entropy(out, self.ids(s + 10 * m + 50, 5, 4)) / self.M)

    def update(self, s):
        self.opt.step()


class Lamb(Net):
    """Layers with leaky corners, one vector that is averaged; LAMB."""
    D, B, INSIDE = 7, 5, True

    def build(self):
        for i in range(3):
            self.w |= {f"w{i}": self.new(self.D, self.D), f"b{i}": self.new(self.D)}

    def step(self, s):
        x = self.data(s, self.B, self.D)
        for i in range(3):
            x = x + F.leaky_relu(x @ self.w[f"w{i}"].t() + self.w[f"b{i}"], 0.1)
        backward(self, (x - self.data(s + 50, self.B, self.D)).pow(2).mean())
        self.bucket()

    def update(self, s):
        for k, w in self.w.items():
            m, v = self.moments.setdefault(k, [torch.zeros(w.shape), torch.zeros(w.shape)])
            m.mul_(0.9).add_(w.grad, alpha=0.1)
            v.mul_(0.99).addcmul_(w.grad, w.grad, value=0.01)
            u = (m / (1 - 0.9 ** (s + 1))) / ((v / (1 - 0.99 ** (s + 1))).sqrt() + 1e-6) + 0.01 * w
            w.sub_(u * (self.rate * torch.norm(w) / torch.norm(u)))


class Adafactor(Net):
    """Bags of words, divided before the sum, one collective a weight; second moments of rows and of columns."""
    V, D, INSIDE = 14, 6, True

    def build(self):
        self.w = {"embed": self.new(self.V, self.D), "u": self.new(9, self.D), "d": self.new(4, 9), "b": self.new(4)}
        self.second = {}

    def step(self, s):
        ids, starts = self.ids(s, self.V, 11), torch.tensor([0, 3, 3, 7])   # the second bag is empty
        x = F.embedding_bag(ids, self.w["embed"], starts, mode="mean")
        out = F.linear(F.softplus(F.linear(x, self.w["u"])), self.w["d"], self.w["b"])
        backward(self, F.nll_loss(F.log_softmax(out, -1), self.ids(s + 50, 4, 4)))
        for w in reversed(list(self.w.values())):
            w.grad.div_(self.n)
            dist.all_reduce(w.grad)

    def update(self, s):
        keep = 1 - (s + 1) ** -0.8
        for k, w in self.w.items():
            square = w.grad * w.grad + 1e-30
            if w.dim() == 1:
                self.second[k] = [keep * self.second.get(k, [0])[0] + (1 - keep) * square]
                u = w.grad / torch.sqrt(self.second[k][0])
            else:
                row, col = self.second.get(k, (0, 0))
                row, col = (keep * old + (1 - keep) * torch.mean(square, at) for old, at in ((row, 1), (col, 0)))
                self.second[k] = row, col
                u = w.grad * torch.rsqrt(torch.outer(row / torch.mean(row), col))
            u = u / torch.clamp(torch.sqrt(torch.mean(u * u)), min=1.0)
            w.sub_(0.02 * u)


class Lstm(Net):
    """A cell that no recorder sees; gradients are clipped by torch."""
    V, D, STEPS = 10, 6, 3

    def build(self):
        self.embed, self.cell, self.head = nn.Embedding(self.V, self.D), nn.LSTM(self.D, self.D), \
            nn.Linear(self.D, self.V)
        self.of(nn.ModuleList([self.embed, self.cell, self.head]))

    def step(self, s):
        ids = self.ids(s, self.V, 6, 3)
        out, _ = self.cell(self.embed(ids[:-1]))
        backward(self, F.cross_entropy(self.head(out).flatten(0, 1), ids[1:].flatten()))
        self.each(AVG)

    def update(self, s):
        torch.nn.utils.clip_grad_norm_(self.w.values(), 0.5)
        super().update(s)


class Skips(Net):
    """Gradients of a loss that is scaled are summed in half precision. In the second step those of rank 1 overflow,
    so that the sum does, and no rank goes on: the step is skipped, and the scale halved."""
    D, B, STEPS, INSIDE, CHECKED = 6, 4, 3, True, (0, 2)

    def build(self):
        self.model = self.of(nn.Sequential(nn.Linear(self.D, 10), nn.ReLU(), nn.Linear(10, self.D)))
        self.scale = 512.0

    def run(self, s):
        x = self.data(s, self.B, self.D) * (2000.0 if s == 1 and self.r == self.n - 1 else 1.0)
        loss = F.mse_loss(self.model(x), self.data(s + 50, self.B, self.D))
        backward(self, loss * self.scale)

    def counted(self, name):
        return [x / self.scale for x in self.losses]

    def graded(self):
        at, out = 0, {}
        for k, w in self.w.items():
            out[k] = self.flat[at:at + w.numel()].view(w.shape)
            at += w.numel()
        return out

    def step(self, s):
        self.run(s)
        flat = torch.cat([w.grad.reshape(-1) for w in self.w.values()]).to(LOW["half"])
        dist.all_reduce(flat)
        self.skip = not torch.isfinite(flat).all().item()
        self.flat = flat.float() if LOW["half"] == torch.half else flat
        self.flat.mul_(1 / (self.scale * self.n))

    def update(self, s):
        if self.skip:
            self.scale /= 2
            return
        for k, g in self.graded().items():
            self.w[k].sub_(self.rate * g)


class Flags(Skips):
    """Each rank looks at its own gradients first; if one has found an overflow, nothing is reduced."""
    RANKS = 3

    def step(self, s):
        self.run(s)
        low = [w.grad.to(LOW["half"]) for w in self.w.values()]
        found = torch.tensor([float(any(torch.isinf(g).any().item() or (g != g).any().item() for g in low))])
        dist.all_reduce(found, op=dist.ReduceOp.MAX)
        self.skip = found.item() > 0
        if self.skip:
            return
        self.flat = torch.cat([g.double().view(-1) for g in low]).div_(self.scale)
        dist.all_reduce(self.flat, op=AVG)


class Masters(Net):
    """Weights of few bits, of which each rank has a copy with more, for Adam; gradients are summed with more."""
    V, D, B, INSIDE = 11, 8, 6, True

    def build(self):
        d, low = self.D, LOW["bfloat16"]
        self.model = nn.Sequential(nn.Embedding(self.V, d), nn.LayerNorm(d), nn.Linear(d, 12), nn.SiLU(),
                                   nn.Linear(12, d), nn.LayerNorm(d), nn.Linear(d, self.V)).to(low)
        self.of(self.model)
        self.main = {k: w.detach().float() for k, w in self.w.items()}

    def step(self, s):
        ids = self.ids(s, self.V, self.B)
        out = self.model(ids)
        out = out.float() if out.dtype == torch.bfloat16 else out
        backward(self, F.cross_entropy(out, self.ids(s + 50, self.V, self.B), label_smoothing=0.1))
        for k, w in self.w.items():
            g = w.grad.float() if w.dtype == torch.bfloat16 else w.grad
            dist.all_reduce(g)
            self.moments.setdefault(k + "g", {})["g"] = g / self.n

    def graded(self):
        return {k: self.moments[k + "g"]["g"] for k in self.w}

    def update(self, s):
        for k, g in self.graded().items():
            m, v = self.moments.setdefault(k, [torch.zeros(g.shape), torch.zeros(g.shape)])
            m.lerp_(g, 0.1)
            v.lerp_(g * g, 0.01)
            root = ((v / (1 - 0.99 ** (s + 1))) ** 0.5) + 1e-8
            self.main[k] = self.main[k] - 0.02 * (m / (1 - 0.9 ** (s + 1))) / root
            self.w[k].copy_(self.main[k])


class Segment(Net):
    """Each pixel's class, of which some have none; batches of other sizes; what was large is joined again. The loss is
    divided by the pixels that all ranks have."""
    C, K, SHARE = 6, 4, 1

    def build(self):
        c = self.C
        self.down, self.low = nn.Conv2d(3, c, 3, padding=1), nn.Conv2d(c, 2 * c, 3, stride=2, padding=1)
        self.norm, self.up = nn.GroupNorm(2, 2 * c), nn.ConvTranspose2d(2 * c, c, 2, stride=2)
        self.head = nn.Conv2d(2 * c, self.K, 1)
        self.of(nn.ModuleList([self.down, self.low, self.norm, self.up, self.head]))

    def step(self, s):
        b = 3 - self.r
        labels = self.ids(s + 50, self.K, b, 8, 8)
        labels[:, :2 + self.r] = 255
        x = F.relu(self.down(self.data(s, b, 3, 8, 8)))
        y = F.elu(self.norm(self.low(x)))
        y = self.up(y) + F.interpolate(y, scale_factor=2.0, mode="bilinear", align_corners=False)[:, ::2]
        out = self.head(torch.cat((x, y), dim=1))
        loss = F.cross_entropy(out, labels, ignore_index=255, reduction="none",
                               weight=torch.tensor([1.0, 2.0, 0.5, 1.0]).to(out.dtype))
        count = (labels != 255).to(out.dtype).sum()
        dist.all_reduce(count)
        backward(self, loss.sum() / count)
        self.each()


class Synced(torch.autograd.Function):
    """Batch norm as torch's own: means and counts of all ranks are gathered."""

    @staticmethod
    def forward(ctx, x, w, b):
        var, mean = torch.var(x, 0, unbiased=False), torch.mean(x, 0)
        every = torch.stack(take(torch.cat([mean, var, torch.full((1,), float(len(x)))])))
        means, vars_, counts = every.split([x.shape[1], x.shape[1], 1], 1)
        n = counts.sum()
        mean = (means * counts).sum(0) / n
        var = ((vars_ + (means - mean) ** 2) * counts).sum(0) / n
        inv = torch.rsqrt(var + 1e-5)
        ctx.save_for_backward(x, w, mean, inv, n)
        return (x - mean) * inv * w + b

    @staticmethod
    def backward(ctx, g):
        x, w, mean, inv, n = ctx.saved_tensors
        y = (x - mean) * inv
        dot, total = (g * y).sum(0), g.sum(0)
        both = torch.cat([total, dot])
        dist.all_reduce(both)
        a, b = both.chunk(2)
        return (g - a / n - y * b / n) * inv * w, dot, total


class Welford(Net):
    """Batch norm over three ranks with seven, five and two samples; each sample counts as much."""
    RANKS, D, SIZES, SHARE = 3, 5, (7, 5, 2), 1

    def build(self):
        for i in range(3):
            self.w |= {f"w{i}": self.new(self.D, self.D), f"g{i}": 1 + self.new(self.D), f"b{i}": self.new(self.D)}

    def step(self, s):
        b = self.SIZES[(self.r + s) % 3]
        x = self.data(s, b, self.D)
        for i in range(3):
            y = Synced.apply(torch.matmul(x, self.w[f"w{i}"]), self.w[f"g{i}"], self.w[f"b{i}"])
            x = x + torch.relu(y)
        backward(self, F.l1_loss(x, self.data(s + 50, b, self.D), reduction="sum") / sum(self.SIZES))
        self.bucket(op=dist.ReduceOp.SUM)


class Depth(Net):
    """Layers that are left out, of which all ranks know, computed again in the way back; what a layer drops is each
    rank's own. Weights that were of no use get zeros, and are averaged."""
    D, B, L, STEPS = 8, 4, 5, 3

    def build(self):
        for i in range(self.L):
            self.w |= {f"n{i}": 1 + self.new(self.D), f"u{i}": self.new(12, self.D), f"d{i}": self.new(self.D, 12)}
        self.w["never"] = self.new(3, self.D)

    def layer(self, x, n, u, d):
        h = F.silu(F.linear(F.layer_norm(x, (self.D,), n), u))
        return x + F.dropout(F.linear(h, d), 0.2, True)

    def step(self, s):
        torch.manual_seed(100 * self.seed + 10 * s + self.r)
        together = torch.Generator().manual_seed(31 * self.seed + s)
        x = self.data(s, self.B, self.D).requires_grad_()
        left = torch.randint(self.L, (2,), generator=together).tolist()
        for i in range(self.L):
            if i not in left:
                x = checkpoint(self.layer, x, *(self.w[f"{k}{i}"] for k in "nud"))
        backward(self, F.smooth_l1_loss(x, self.data(s + 50, self.B, self.D)))
        self.each(AVG)


class Idle(Net):
    """Rank 2 has a batch less than the others. In the last step it has none, but takes part in the sums, which are
    divided by those that had one."""
    RANKS, D, B, STEPS, CHECKED, INSIDE, SHARE = 3, 6, 4, 3, (0, 2), True, 1

    def build(self):
        self.model = self.of(nn.Sequential(nn.Linear(self.D, 9), nn.Tanh(), nn.Linear(9, 9), nn.Tanh(),
                                           nn.Linear(9, 3)))

    def counted(self, name):
        return [x / self.active.item() for x in self.losses]

    def step(self, s):
        here = not (s == 2 and self.r == 2)
        self.active = torch.tensor([int(here)])
        dist.all_reduce(self.active)
        if here:
            backward(self, F.cross_entropy(self.model(self.data(s, self.B, self.D)), self.ids(s + 50, 3, self.B)))
        self.each()
        for w in self.w.values():
            w.grad /= self.active

    def update(self, s):
        self.momentum()


class Muon(Net):
    """Updates of matrices are made orthogonal by their owners, and sent to all; the rest is Adam's."""
    D, B, INSIDE = 8, 6, True

    def build(self):
        self.w = {"embed": self.new(10, self.D), "b": self.new(self.D)}
        for i in range(3):
            self.w[f"m{i}"] = self.new(self.D, self.D)

    def step(self, s):
        x = F.embedding(self.ids(s, 10, self.B), self.w["embed"])
        for i in range(3):
            x = x + torch.sigmoid(torch.einsum("bi,oi->bo", x, self.w[f"m{i}"]) + self.w["b"])
        out = torch.einsum("bd,vd->bv", x, self.w["embed"])
        backward(self, F.cross_entropy(out, self.ids(s + 50, 10, self.B)))
        self.bucket()

    def update(self, s):
        self.adam(s, ["embed", "b"])
        for i in range(3):
            w = self.w[f"m{i}"]
            m = self.moments.setdefault(f"m{i}", torch.zeros(w.shape))
            m.mul_(0.95).add_(w.grad)
            u = torch.zeros(w.shape)
            if i % self.n == self.r:
                x = w.grad + 0.95 * m
                x = x / (torch.norm(x) + 1e-7)
                for _ in range(3):
                    y = x @ x.t()
                    x = 3.4445 * x + (-4.775 * y + 2.0315 * (y @ y)) @ x
                u.copy_(x)
            dist.broadcast(u, i % self.n)
            w.sub_(u, alpha=0.02)


class Evals(Net):
    """Between the steps all look how they do on samples that are dealt out, of which the last is there twice; what
    they say is gathered; the rate falls on all ranks if it is no better; rank 0 says whether to stop."""
    D, B, K, VAL, STEPS = 6, 4, 3, 7, 3

    def build(self):
        self.model = self.of(nn.Sequential(nn.Linear(self.D, 8), nn.Hardtanh(), nn.Linear(8, self.K)))
        self.best = float("inf")

    def step(self, s):
        backward(self, F.cross_entropy(self.model(self.data(s, self.B, self.D)), self.ids(s + 50, self.K, self.B)))
        self.bucket()
        with torch.no_grad():
            x, y = self.data(80, self.VAL, self.D, rank=0), self.ids(90, self.K, self.VAL, rank=0)
            mine = torch.tensor([*range(self.VAL), self.VAL - 1])[self.r::self.n]
            out = self.model(x[mine])
            said = torch.stack(take(torch.argmax(out, -1)), 1).view(-1)[:self.VAL]
            right = (said == y).float().mean().item()
            loss = torch.stack([F.cross_entropy(out, y[mine], reduction="sum"), torch.tensor(float(len(mine)))])
            dist.all_reduce(loss)
            loss = (loss[0] / loss[1]).item()
            if loss >= self.best:
                self.rate *= 0.5
            self.best = min(loss, self.best)
            stop = torch.tensor([int(self.r == 0 and right == 1.0)], dtype=torch.int32)
            dist.broadcast(stop, 0)


class Saturated(Net):
    """A cell by hand whose gates are shut or open and whose inputs are near 0: gradients vanish, some are 0."""
    D, B, T = 5, 4, 4

    def build(self):
        self.w = {"h": self.new(3 * self.D, self.D, by=3.0), "x": self.new(3 * self.D, self.D),
                  "b": self.new(3 * self.D), "o": self.new(2, self.D)}
        self.w["b"][:self.D] = 40.0
        self.w["b"][self.D:2 * self.D] -= 120.0

    def step(self, s):
        h = torch.zeros(self.B, self.D)
        for t in range(self.T):
            x = self.data(s + 5 * t, self.B, self.D) * 1e-12
            i, f, g = (x @ self.w["x"].t() + h @ self.w["h"].t() + self.w["b"]).chunk(3, -1)
            h = torch.tanh(f.sigmoid() * h + i.sigmoid() * (30 * g).tanh())
        backward(self, F.huber_loss(h.matmul(self.w["o"].t()), self.data(s + 50, self.B, 2), delta=0.3))
        self.each(AVG)


class Ctc(Net):
    """Sounds and their texts, of other lengths on each rank; one rank's batch has an empty text."""
    C, V, T, B = 6, 5, 9, 3

    def build(self):
        self.model = self.of(nn.Sequential(nn.Conv1d(4, self.C, 3, padding=1), nn.SELU(),
                                           nn.Conv1d(self.C, self.V, 3, padding=1)))

    def step(self, s):
        logits = self.model(self.data(s, self.B, 4, self.T)).permute(2, 0, 1)
        texts = 1 + self.ids(s + 50, self.V - 1, self.B, 3)
        ends, sizes = torch.tensor([self.T, self.T - 1 - self.r, self.T - 2]), torch.tensor([3, 2 * (1 - self.r), 1])
        backward(self, F.ctc_loss(F.log_softmax(logits, -1), texts, ends, sizes))
        self.each(AVG)


class Power(Net):
    """Counts that are predicted, with samples that each rank has more or fewer of; the norm of batches is over all
    ranks, by a sum that autograd knows, and gradients are the sum's."""
    RANKS, D, SHARE = 3, 5, 1

    def build(self):
        self.w = {"a": self.new(self.D, self.D), "g": 1 + self.new(self.D), "o": self.new(self.D, 2)}

    def step(self, s):
        b = 2 + self.r
        x = self.data(s, b, self.D) @ self.w["a"]
        mean = Total.apply(x.sum(0)) / 9
        var = Total.apply((x - mean).pow(2).sum(0)) / 9
        rate = torch.exp(torch.clamp(((x - mean) / (var + 1e-5).sqrt() * self.w["g"]) @ self.w["o"], max=3.0))
        counts = self.ids(s + 50, 4, b, 2).to(rate.dtype)
        backward(self, (rate - counts * torch.log(rate + 1e-8)).sum() / 18)
        self.each()


NETS = {"ddp": Ddp, "nosync": Nosync, "lamb": Lamb, "adafactor": Adafactor, "lstm": Lstm, "skips": Skips,
        "flags": Flags, "masters": Masters, "segment": Segment, "welford": Welford, "depth": Depth, "idle": Idle,
        "muon": Muon, "evals": Evals, "saturated": Saturated, "ctc": Ctc, "power": Power}
