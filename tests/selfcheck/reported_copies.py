"""Networks of reported.py that are copies on all ranks, of other samples, and their bugs, each with a report of it."""
import torch
import torch.distributed as dist
import torch.nn.functional as F

from sound_net import AVG, Net, take

# Bug: its network, the op call that is wrong (or has first what is), its ranks.
FAULTS = {
    # https://github.com/horovod/horovod/issues/1099 "there is duplicated(twice) synchronization. Once is when
    # 'synchronize' is called and second one is when 'step' is called"; here of sums
    "twosync": ("accum", r"all_reduce.(1|3|5|7|9|11|13)\.|Tensor.div_.[0-6]\.", "012"),
    # https://github.com/lodestone-rock/RamTorch/issues/13 "re-reduces stale owner-rank gradients": what the step before
    # has left on one rank
    "notzeroed": ("accum", r"step1:Tensor.add_.[0-6]\.", "1"),
    # https://github.com/horovod/horovod/issues/1346 "gradient clipping is done locally (before allreduce)"
    "clipfirst": ("accum",
                  r"Torch.(sqrt|clamp).0|Tensor.(mul_.[0-6]|__rtruediv__.0|__add__.[2-8]|sum.[0-6])\.|all_reduce.[0-6]",
                  "012"),
    # https://github.com/openspeech-team/openspeech/issues/149 "samples the same examples for all the accelerators";
    # https://github.com/k2-fsa/icefall/issues/1616 "Identical Batches Across Multiple GPUs"
    "samedata": ("accum", r"Tensor.__getitem__.0\.|embedding.[01].forward|all_reduce.0\.", "012"),
    # https://github.com/lightly-ai/lightly/issues/1018 "the batch is not all_gathered before the queue is updated"
    "ownqueue": ("moco", r"Torch.(cat.4|matmul.0)\.|Tensor.(t.0|__getitem__.7|type_as.0)\.", "01"),
    # https://github.com/facebookresearch/moco/issues/37 "broadcast a random indexes to every devices from src=0": here
    # each rank keeps its own
    "ownshuffle": ("moco", "Tensor.(chunk|__getitem__).[01].forward", "01"),
    # https://github.com/m2lines/Samudra/pull/326 "Fix initial ema creation in distributed mode": it was made before
    # the weights were those of all
    "emaown": ("moco", "(linear.[23]|batch_norm.1).forward", "01"),
    # https://github.com/pytorch/pytorch/issues/128949 "Parameters out of sync over different ranks due to unused
    # parameters"
    "unused": ("detect", r"all_reduce.[5-8]\.|conv2d.2.forward|Tensor.(div|mul|add|sub)_.[5-8]\.", "01"),
    # https://github.com/pytorch/pytorch/issues/136009 "After synchronization, each process unscales the gradients using
    # its own scaling factor"
    "ownscale": ("detect", r"Tensor.(__mul__.0|div_.[0-8])\.|all_reduce.0\.", "01"),
    # https://github.com/Lightning-AI/pytorch-lightning/issues/20340 "I think it does that only on process 0, and the
    # way DDP works it wouldn't sync these changes to the other models"
    "unfrozen": ("detect", r"conv2d.0\.|Tensor.(div|mul|add|sub)_.[01]\.", "01"),
    # https://github.com/Denys88/rl_games/pull/363 "every rank's obs/value normalizers drift on their local shard";
    # https://github.com/leggedrobotics/rsl_rl/pull/226
    "ownobs": ("robot",
               r"Torch.(cat|rsqrt).0\.|Tensor.(type_as.1|__add__.[12]|__getitem__.[0-3]|__(truediv|sub)__.[01])\.",
               "012"),
    # https://github.com/hill-a/stable-baselines/pull/52 "not summing the timesteps_so_far variable across all MPI
    # workers ... causing the learning rate schedule to differ across workers"
    "ownrate": ("robot", r"Tensor.sub_.[0-6]\.", "012"),
    # https://github.com/vwxyzjn/cleanrl/issues/476 "Different network parameter on different GPU in
    # ppo_atari_multigpu.py"
    "ownagent": ("robot", "(linear.[0-5]|Tensor.(__neg__.[01]|__sub__.[35])).forward", "012"),
}


def backward(net, loss, scale=None):
    net.losses.append(loss.item())
    if scale is not None:
        loss = loss * scale
    loss.backward()


def own_start(w, r):
    """What a rank's own seed makes of a weight."""
    seed = torch.Generator().manual_seed(700 + r)
    return w + 0.3 * torch.randn(w.shape, generator=seed, dtype=torch.float32).to(w.dtype)


class Accum(Net):
    """A language model whose table is the head, on three ranks; the gradients of two micro-batches are added to buffers
    that stay, then summed one by one and divided. Clipped by the norm of all; AdamW."""
    RANKS, V, D, B, T, M, INSIDE = 3, 10, 6, 2, 5, 2, True

    def build(self):
        d = self.D
        self.w = {"table": self.new(self.V, d, by=1.0), "mix": self.new(d, 2 * d), "n": 1 + self.new(d),
                  "nb": self.new(d), "u": self.new(12, d), "ub": self.new(12), "d": self.new(d, 12)}
        self.main = {k: torch.zeros(w.shape) for k, w in self.w.items()}

    def logits(self, ids):
        x = F.embedding(ids, self.w["table"])
        before = torch.cat([torch.zeros(self.B, 1, self.D), x[:, :-1]], 1)
        x = torch.tanh(F.linear(torch.cat([before, x], -1), self.w["mix"]))
        a = F.layer_norm(x, (self.D,), self.w["n"], self.w["nb"])
        x = x + F.linear(F.gelu(F.linear(a, self.w["u"], self.w["ub"])), self.w["d"])
        return F.linear(x, self.w["table"])

    def step(self, s):
        for g in self.main.values():
            if self.fault != "notzeroed" or self.r != 1:
                g.zero_()
        for m in range(self.M):
            ids = self.ids(s + 10 * m, self.V, self.B, self.T + 1, rank=0 if self.fault == "samedata" else self.r)
            out = self.logits(ids[:, :-1])
            backward(self, F.cross_entropy(out.reshape(-1, self.V), ids[:, 1:].reshape(-1)) / self.M)
            for k, w in self.w.items():
                self.main[k].add_(w.grad)
                w.grad = None
        if self.fault == "clipfirst":
            self.clip()
        for g in self.main.values():
            dist.all_reduce(g)
            if self.fault == "twosync":
                dist.all_reduce(g)
            g.div_(self.n)

    def graded(self):
        return self.main

    def clip(self):
        with torch.no_grad():
            norm = torch.sqrt(sum((g * g).sum() for g in self.main.values()))
            by = torch.clamp(0.3 / (norm + 1e-6), max=1.0)
            for g in self.main.values():
                g.mul_(by)

    def update(self, s):
        if self.fault != "clipfirst":
            self.clip()
        for k, w in self.w.items():
            w.grad = self.main[k]
        self.adam(s, decay=0.02)


class Moco(Net):
    """Two views of each sample; keys come from an average of the weights, whose batches are shuffled over all ranks by
    what rank 0 has drawn; all ranks' keys go into a queue; momentum."""
    B, D, K, LONG = 4, 6, 5, 16

    def build(self):
        self.w = {"w1": self.new(8, self.D, by=0.5), "b1": self.new(8), "g": 1 + self.new(8), "gb": self.new(8),
                  "w2": self.new(self.K, 8, by=0.5)}
        self.keys = {k: (own_start(w, self.r) if self.fault == "emaown" and self.r else w).detach().clone()
                     for k, w in self.w.items()}
        seed = torch.Generator().manual_seed(self.seed)
        self.queue = F.normalize(torch.randn(self.K, self.LONG, generator=seed), dim=0)
        self.drawn = torch.Generator().manual_seed(50 + self.r)

    def coded(self, x, w):
        h = F.batch_norm(F.linear(x, w["w1"], w["b1"]), None, None, w["g"], w["gb"], training=True)
        return F.normalize(F.linear(F.relu(h), w["w2"]), dim=-1)

    def shuffled(self, x):
        every = torch.cat(take(x))
        order = torch.randperm(len(every), generator=self.drawn)
        if self.fault != "ownshuffle":
            dist.broadcast(order, 0)
        k = torch.cat(take(self.coded(every[order.chunk(self.n)[self.r]], self.keys)))
        return k[torch.argsort(order).chunk(self.n)[self.r]]

    def step(self, s):
        x = self.data(s, self.B, self.D)
        q = self.coded(x + 0.3 * self.data(s + 20, self.B, self.D), self.w)
        with torch.no_grad():
            k = self.shuffled(x + 0.3 * self.data(s + 40, self.B, self.D))
        queue = self.queue.type_as(q)
        logits = torch.cat([(q * k).sum(-1, keepdim=True), torch.matmul(q, queue)], 1) / 0.2
        backward(self, F.cross_entropy(logits, torch.zeros(self.B, dtype=torch.long)))
        self.bucket()
        with torch.no_grad():
            k = k if self.fault == "ownqueue" else torch.cat(take(k))
            self.queue = torch.cat([queue[:, len(k):], k.t()], 1)

    def update(self, s):
        self.momentum()
        for k, w in self.w.items():
            self.keys[k].mul_(0.9).add_(w, alpha=0.1)


class Detect(Net):
    """A scaled loss of classes, and of masks where a rank's images have some: ranks without take part with zeros. The
    first layers learn from the second step on. Gradients are averaged one by one, and unscaled; momentum."""
    B, C, D, STEPS, CHECKED, INSIDE = 3, 4, 5, 3, (1, 2), True

    def build(self):
        d = self.D
        self.w = {"c1": self.new(d, 3, 3, 3), "b1": self.new(d), "c2": self.new(d, d, 3, 3), "g2": 1 + self.new(d),
                  "b2": self.new(d), "cls": self.new(self.C, d), "clsb": self.new(self.C),
                  "mask": self.new(1, d, 3, 3), "maskb": self.new(1)}
        self.scale = 16.0 if self.fault == "ownscale" and self.r else 8.0

    def learns(self, s):
        return s > 0 and not (self.fault == "unfrozen" and self.r)

    def step(self, s):
        c1, b1 = (self.w[k] if self.learns(s) else self.w[k].detach() for k in ("c1", "b1"))
        x = F.relu(F.conv2d(self.data(s, self.B, 3, 6, 6), c1, b1, stride=2))
        x = F.silu(F.group_norm(F.conv2d(x, self.w["c2"], padding=1), 1, self.w["g2"], self.w["b2"]))
        loss = F.cross_entropy(F.linear(x.mean((2, 3)), self.w["cls"], self.w["clsb"]),
                               self.ids(s + 50, self.C, self.B))
        masks = (s + self.r) % 2 == 0
        if masks:
            out = F.conv2d(x, self.w["mask"], self.w["maskb"], padding=1)
            want = self.ids(s + 70, 2, *out.shape).type_as(out)
            loss = loss + 0.5 * F.binary_cross_entropy_with_logits(out, want)
        backward(self, loss, self.scale)
        late = [] if s == 0 or self.fault == "unfrozen" else ["c1", "b1"]
        self.each(AVG, names=late + [k for k in self.w if k not in ("c1", "b1")])
        if self.fault == "unused" and not masks:
            self.w["mask"].grad = self.w["maskb"].grad = None
        for w in self.w.values():
            if w.grad is not None:
                w.grad.div_(self.scale)

    def update(self, s):
        self.momentum([k for k, w in self.w.items() if w.grad is not None])


class Robot(Net):
    """An actor and a critic; what is seen is normalized by running means of all three ranks; the rate goes down with
    the steps that all have taken; one vector is averaged, and clipped; momentum."""
    RANKS, B, SEEN, ACTS, H, INSIDE = 3, 5, 4, 2, 7, True

    def build(self):
        h = self.H
        self.w = {"a1": self.new(h, self.SEEN, by=0.5), "ab": self.new(h), "a2": self.new(self.ACTS, h, by=0.5),
                  "std": self.new(self.ACTS), "c1": self.new(h, self.SEEN, by=0.5), "cb": self.new(h),
                  "c2": self.new(1, h, by=0.5)}
        if self.fault == "ownagent" and self.r:
            self.w = {k: own_start(w, self.r) for k, w in self.w.items()}
        self.before = {k: (w + self.new(*w.shape, by=0.1)).detach() for k, w in self.w.items()}
        self.sums, self.taken = torch.zeros(2 * self.SEEN + 1), 0.0

    def normed(self, x):
        own = torch.full((1,), float(self.B)).type_as(x)
        sums = torch.cat([x.sum(0), (x * x).sum(0), own])
        if self.fault != "ownobs":
            dist.all_reduce(sums)
        self.sums = self.sums.type_as(x) + sums
        mean = self.sums[:self.SEEN] / self.sums[-1]
        var = self.sums[self.SEEN:-1] / self.sums[-1] - mean * mean
        return (x - mean) * torch.rsqrt(var + 1e-5)

    def chance(self, x, acts, w):
        mean = F.linear(torch.tanh(F.linear(x, w["a1"], w["ab"])), w["a2"])
        z = (acts - mean) * torch.exp(-w["std"])
        return (-0.5 * z * z - w["std"]).sum(-1)

    def step(self, s):
        x = self.normed(self.data(s, self.B, self.SEEN) * (1 + self.r) + self.r)
        acts, good, due = (self.data(s + 20 + 10 * i, self.B, *d) for i, d in enumerate([(self.ACTS,), (), (1,)]))
        ratio = torch.exp(self.chance(x, acts, self.w) - self.chance(x, acts, self.before))
        gain = torch.minimum(ratio * good, torch.clamp(ratio, 0.8, 1.2) * good).mean()
        value = F.linear(F.elu(F.linear(x, self.w["c1"], self.w["cb"])), self.w["c2"])
        backward(self, F.mse_loss(value, due) * 0.5 - gain - 0.01 * self.w["std"].sum())
        taken = torch.tensor([40.0, 75.0, 95.0][self.r] + 20 * s)
        if self.fault != "ownrate":
            dist.all_reduce(taken)
        self.taken += float(taken)
        self.bucket()

    def update(self, s):
        norm = torch.sqrt(sum((w.grad * w.grad).sum() for w in self.w.values()))
        by = torch.clamp(1.0 / (norm + 1e-6), max=1.0)
        left = 1 - self.taken / 1000
        for k, w in self.w.items():
            w.grad.mul_(by)
            m = self.moments.setdefault(k, torch.zeros(w.shape))
            m.mul_(0.9).add_(w.grad)
            w.sub_(m, alpha=self.rate * left)


NETS = {"accum": Accum, "moco": Moco, "detect": Detect, "robot": Robot}
