"""Networks of kinds.py in stages or copies, with optimizers of one part each or not, and their bugs, each
with a report of it."""
import torch
import torch.distributed as dist
import torch.nn.functional as F

from kinds_split import attend, rms, square
from sound_net import AVG, Fetch, Net, take

# Bug: its network, the op call that is wrong (or has first what is), its ranks.
FAULTS = {
    # https://github.com/mosaicml/composer/pull/3273 "we want to weight each token equally", and not each rank
    "ownmean": ("translator", r"Tensor.(sum|__truediv__).0\.|all_reduce.\d+\.", "012"),
    # https://github.com/NVIDIA/TransformerEngine/pull/545 one use of a tied weight writes its gradient where
    # another's is: here this is reduced when the first has come
    "early": ("translator", r"all_reduce.12\.|Tensor.add_.0\.|embedding.[01].backward", "012"),
    # https://github.com/pytorch/pytorch/issues/136009 "GradScaler Scales Differ Across Processes"
    "scaler": ("conv", r"Tensor.(__mul__.0|mul_.[0-7])\.|all_reduce.0\.", "01"),
    # https://github.com/ml-explore/mlx-lm/pull/1413 "each micro-batch gradient is already normalized by its
    # own token count"
    "permicro": ("accumulated", r"Tensor.__truediv__.[01]\.|nll_loss.[01]\.", "01"),
    # https://github.com/vllm-project/speculators/pull/926 "Only rank0 loads ckpt": here what Adam knows
    "resumed": ("accumulated", r"Tensor.((mul|add|addcmul|sqrt|addcdiv)_.\d+|__truediv__.[2-7])\.", "01"),
    # https://github.com/deepspeedai/DeepSpeed/issues/624 "to my understanding, Params_in_rank_sub_partitions
    # has not updated grads": here a weight is sent before it is new
    "stale": ("owners", r"broadcast.0\.|linear.1.forward", "012"),
    # https://github.com/deepspeedai/DeepSpeed/issues/966 ZeRO with a weight that two modules share is not as
    # without
    "listed": ("owners", r"all_reduce.[06]\.|Tensor.div_.0\.", "012"),
    # https://github.com/karpathy/nanochat/pull/857 "LR can diverge between ranks"
    "rate": ("shards", r"Tensor.(__mul__.[1-4]|sub_.[0-3])\.forward", "0123"),
    # https://github.com/NVIDIA/Megatron-LM/issues/299 "we need to all-reduce the gradients to ensure the two
    # embedding copies continue to remain in sync"
    "unjoined": ("twostages", r"(embedding|linear).[01].backward", "01"),
    # https://github.com/tensorflow/benchmarks/issues/466 averaged in one place and summed in the other: here
    # what the ends share
    "endsaverage": ("fourstages", r"all_reduce.0\.", "03"),
    # https://github.com/uw-syfi/piper/issues/13 "duplicated on each actor and their gradients are not
    # synchronized"
    "middle": ("fourstages", r"Tensor.(__getitem__.[135]|__add__.(2|6|10)).backward", "12"),
    # https://github.com/NVIDIA/Megatron-LM/issues/844 "reduce-scattered across DP ranks before the embedding
    # gradients are all-reduced"
    "scattered": ("pairs", r"reduce_scatter_tensor.0\.|all_reduce.0\.", "0123"),
    # https://github.com/facebookresearch/detr/issues/544 "you set a different seed for each rank before
    # building the model": here one stage is not broadcast to its copy
    "unsent": ("pairs", r"linear.[0-3].forward", "23"),
}


def backward(net, loss):
    """A line of this file, which is where recordings say that gradients come from."""
    net.losses.append(loss.item())
    loss.backward()


class Translator(Net):
    """Words of one sequence, with those of another by attention; one table for both and the head. Lengths
    differ; a sum over words by their number on all ranks."""
    RANKS, B, T, D, V, SHARE = 3, 2, 5, 8, 10, 1

    def build(self):
        d = self.D
        self.w = {"table": self.new(self.V, d, by=0.6), "pos": self.new(self.T, d), "ne": 1 + self.new(d),
                  "eb": self.new(d), "enc": self.new(d, d, by=0.5), "nd": 1 + self.new(d), "db": self.new(d),
                  "kv": self.new(2 * d, d, by=0.5), "q": self.new(d, d, by=0.5),
                  "self": self.new(3 * d, d, by=0.5),
                  "o": self.new(d, d), "hb": self.new(self.V)}

    def step(self, s):
        w, d = self.w, self.D
        source = self.ids(s, self.V, self.B, self.T)
        ids = self.ids(s + 50, self.V, self.B, self.T + 1)
        goal = ids[:, 1:].clone()
        goal[0, 2 + self.r:] = -100
        goal[1, 5 - 2 * self.r + s:] = -100
        memory = F.embedding(source, w["table"]) + w["pos"]
        memory = memory + F.gelu(F.linear(F.layer_norm(memory, (d,), w["ne"], w["eb"]), w["enc"]))
        x = F.embedding(ids[:, :-1], w["table"]) + w["pos"]
        x = x + attend(*F.linear(F.layer_norm(x, (d,), w["nd"], w["db"]), w["self"]).chunk(3, -1), 1)
        k, v = F.linear(memory, w["kv"]).chunk(2, -1)
        x = x + F.linear(attend(F.linear(x, w["q"]), k, v), w["o"])
        table, early = w["table"], self.fault == "early"
        if early:
            table = table.detach().clone().requires_grad_()
        out = F.linear(x, table, w["hb"]).reshape(-1, self.V)
        count = (goal != -100).sum().to(x.dtype)
        own = self.fault == "ownmean"
        if not own:
            dist.all_reduce(count)
        loss = F.cross_entropy(out, goal.reshape(-1), ignore_index=-100, reduction="sum", label_smoothing=0.1)
        backward(self, loss / count)
        if early:
            self.each(names=[k for k in w if k != "table"])
            dist.all_reduce(table.grad)
            w["table"].grad.add_(table.grad)
        else:
            self.each(AVG if own else dist.ReduceOp.SUM)

    def update(self, s):
        self.adam(s)


class Conv(Net):
    """Images under BatchNorm and GroupNorm; the loss is scaled, gradients are averaged, scaled back and
    clipped; momentum."""
    B, INSIDE = 3, True

    def build(self):
        self.w = {"c1": self.new(8, 2, 3, 3), "n1": 1 + self.new(8), "b1": self.new(8),
                  "c2": self.new(8, 8, 3, 3),
                  "n2": 1 + self.new(8), "b2": self.new(8), "fc": self.new(4, 8, by=0.6), "fb": self.new(4)}
        self.scale = 32.0 if self.fault == "scaler" and self.r else 16.0

    def step(self, s):
        w = self.w
        x = F.conv2d(self.data(s, self.B, 2, 6, 6), w["c1"], padding=1)
        x = F.relu(F.batch_norm(x, None, None, w["n1"], w["b1"], training=True))
        x = F.relu(F.group_norm(F.conv2d(x, w["c2"], stride=2), 2, w["n2"], w["b2"]))
        out = F.linear(x.mean((2, 3)), w["fc"], w["fb"])
        loss = F.cross_entropy(out, self.ids(s + 50, 4, self.B))
        self.losses.append(loss.item())
        (loss * self.scale).backward()
        self.bucket()

    def graded(self):
        return {k: w.grad / self.scale for k, w in self.w.items()}

    def update(self, s):
        for w in self.w.values():
            w.grad.mul_(1 / self.scale)
        norm = torch.sqrt(sum((w.grad * w.grad).sum() for w in self.w.values()))
        for w in self.w.values():
            w.grad.mul_(torch.clamp(0.5 / (norm + 1e-6), max=1.0))
        self.momentum()


class Accumulated(Net):
    """Words in bags; gradients of two micro-batches of unlike numbers are added and reduced in one vector; a
    sum by the number of all. Adam with decay."""
    D, V, M, SHARE, INSIDE = 8, 12, 2, 1, True

    def build(self):
        d = self.D
        self.w = {"table": self.new(self.V, d, by=0.6), "w1": self.new(12, d, by=0.5), "b1": self.new(12),
                  "n": 1 + self.new(12), "w2": self.new(d, 12, by=0.5), "out": self.new(3, d, by=0.6)}
        fresh = self.fault == "resumed" and self.r == 1
        self.moments = {} if fresh else {
            k: [torch.full(w.shape, 0.01), torch.full(w.shape, 0.0004), 4] for k, w in self.w.items()}

    def step(self, s):
        w = self.w
        sizes = [2 + 3 * self.r, 4 - self.r + s]
        total = torch.tensor(float(sum(sizes)), dtype=w["n"].dtype)
        dist.all_reduce(total)
        for m, n in enumerate(sizes):
            x = torch.mean(F.embedding(self.ids(s + 10 * m, self.V, n, 4), w["table"]), 1)
            x = F.linear(rms(F.linear(x, w["w1"], w["b1"]), w["n"]), w["w2"])
            out = F.log_softmax(F.linear(torch.tanh(x), w["out"]), -1)
            goal = self.ids(s + 50 + 10 * m, 3, n)
            if self.fault == "permicro":
                backward(self, F.nll_loss(out, goal) / (self.M * self.n))
            else:
                backward(self, F.nll_loss(out, goal, reduction="sum") / total)
        self.bucket(op=dist.ReduceOp.SUM)

    def update(self, s):
        self.adam(s, decay=0.1)


class Owners(Net):
    """Three copies of which each has the optimizer of a third of the weights, and sends these when they are
    new. The table is the head, too."""
    RANKS, B, T, D, V, INSIDE = 3, 2, 5, 8, 9, True

    def build(self):
        d = self.D
        self.w = {"table": self.new(self.V, d, by=0.6), "in": self.new(2 * d, d, by=0.5),
                  "n": 1 + self.new(d),
                  "nb": self.new(d), "down": self.new(d, 2 * d, by=0.5), "mix": self.new(d, d, 2, by=0.4)}

    def step(self, s):
        w = self.w
        ids = self.ids(s, self.V, self.B, self.T + 1)
        x = F.embedding(ids[:, :-1], w["table"])
        x = x + F.conv1d(F.pad(x.transpose(1, 2), (1, 0)), w["mix"]).transpose(1, 2)
        h = F.layer_norm(x, (self.D,), w["n"], w["nb"])
        x = x + F.linear(F.relu(F.linear(h, w["in"])).square(), w["down"])
        out = F.linear(x, w["table"]).reshape(-1, self.V)
        backward(self, F.cross_entropy(out, ids[:, 1:].reshape(-1)))
        for k in [*w, *["table"][:self.fault == "listed"]]:
            dist.all_reduce(w[k].grad)
        for w in self.w.values():
            w.grad.div_(self.n)

    def update(self, s):
        mine = list(self.w)[self.r::self.n]
        if self.fault == "stale":
            dist.broadcast(self.w["down"], 4 % self.n)
        self.adam(s, mine, decay=0.1)
        for i, k in enumerate(self.w):
            if not (k == "down" and self.fault == "stale"):
                dist.broadcast(self.w[k], i % self.n)


class Shards(Net):
    """Pairs have halves of each layer's weights, gathered where they are used; two pairs are copies. A rate
    that warms up."""
    RANKS, B, D, INSIDE = 4, 4, 8, True

    def build(self):
        self.shard, self.copy = square(self)
        shapes = {"in": (12, 6), "ib": (12,), "mid": (12, 12), "out": (4, 12)}
        for k, shape in shapes.items():
            self.w[k] = self.new(*shape, by=0.5).chunk(2)[self.r % 2].clone()
        self.warm = 1 if self.fault == "rate" and self.r > 1 else 0

    def step(self, s):
        w = {k: Fetch.apply(x, self.shard) for k, x in self.w.items()}
        x = F.linear(self.data(s, self.B, 6), w["in"], w["ib"])
        x = F.silu(F.group_norm(x, 3))
        x = x + torch.sigmoid(F.linear(x, w["mid"])) * x
        backward(self, F.huber_loss(F.linear(x, w["out"]), self.data(s + 50, self.B, 4)))
        for x in self.w.values():
            dist.all_reduce(x.grad, group=self.copy)
            x.grad.div_(self.n)

    def update(self, s):
        self.warm += 1
        for k, x in self.w.items():
            x.mul_(1 - 0.01 * self.rate)
            x.sub_(x.grad * (self.rate * self.warm / 2))


def forward(net, stage, shape, before, after):
    """What a rank of a pipeline has and makes; the last makes the loss."""
    x = None
    if before is not None:
        x = torch.zeros(shape)
        dist.recv(x, before)
        x.requires_grad_()
    y = stage(x)
    if after is None:
        net.losses.append(y.item())
    else:
        dist.send(y.detach(), after)
    return x, y


def back(x, y, before, after):
    if after is None:
        y.backward()
    else:
        g = torch.zeros(y.shape)
        dist.recv(g, after)
        y.backward(g)
    if before is not None:
        dist.send(x.grad, before)


class Twostages(Net):
    """Causal convolutions in two stages, a table at both ends, two micro-batches: all forward, then all
    back."""
    B, T, D, V, M, SHARE = 2, 5, 8, 9, 2, 1

    def build(self):
        d = self.D
        table = self.new(self.V, d, by=0.6)
        conv = [{"c": self.new(2 * d, d, 2, by=0.4), "cb": self.new(2 * d), "g": 1 + self.new(d),
                 "gb": self.new(d)} for _ in range(2)]
        self.w = {"table": table, **{f"{k}{self.r}": w for k, w in conv[self.r].items()}}

    def block(self, x):
        w = {k[:-1]: x for k, x in self.w.items()}
        h = F.layer_norm(x, (self.D,), w["g"], w["gb"]).transpose(1, 2)
        return x + F.glu(F.conv1d(F.pad(h, (1, 0)), w["c"], w["cb"]), 1).transpose(1, 2)

    def stage(self, s, m, x):
        ids = self.ids(s + 10 * m, self.V, self.B, self.T + 1, rank=0)
        if self.r == 0:
            return self.block(F.embedding(ids[:, :-1], self.w["table"]))
        out = F.linear(self.block(x), self.w["table"]).reshape(-1, self.V)
        return F.cross_entropy(out, ids[:, 1:].reshape(-1)) / self.M

    def step(self, s):
        at = (None, 1) if self.r == 0 else (0, None)
        kept = [forward(self, lambda x, m=m: self.stage(s, m, x), (self.B, self.T, self.D), *at)
                for m in range(self.M)]
        for x, y in kept:
            back(x, y, *at)
        if self.fault != "unjoined":
            dist.all_reduce(self.w["table"].grad)

    def update(self, s):
        self.momentum()


class Fourstages(Net):
    """Layers of attention in four stages, three micro-batches one by one. The ends have one table; the two in
    the middle have one bias of distances."""
    RANKS, B, T, D, V, M, SHARE = 4, 2, 4, 8, 10, 3, 1

    def build(self):
        self.ends, self.mid = dist.new_group([0, 3]), dist.new_group([1, 2])
        d, r = self.D, self.r
        table, far = self.new(self.V, d, by=0.6), self.new(2 * self.T - 1)
        layers = [{"n": 1 + self.new(d), "qkv": self.new(3 * d, d, by=0.5), "o": self.new(d, d)}
                  for _ in range(4)]
        self.w = {f"{k}.{r}": w for k, w in layers[r].items()}
        self.w |= {"table": table} if r in (0, 3) else {"far": far}

    def block(self, x):
        w, t = {k.split(".")[0]: x for k, x in self.w.items()}, self.T
        q, k, v = F.linear(rms(x, w["n"]), w["qkv"]).chunk(3, -1)
        if "far" not in w:
            return x + F.linear(attend(q, k, v, 1), w["o"])
        scores = torch.matmul(q, k.transpose(1, 2)) * self.D ** -0.5
        scores = scores + w["far"][torch.arange(t)[:, None] - torch.arange(t) + t - 1]
        return x + F.linear(torch.matmul(F.softmax(scores, -1), v), w["o"])

    def stage(self, s, m, x):
        ids = self.ids(s + 10 * m, self.V, self.B, self.T + 1, rank=0)
        if self.r == 0:
            x = F.embedding(ids[:, :-1], self.w["table"])
        x = self.block(x)
        if self.r < 3:
            return x
        out = F.linear(x, self.w["table"]).reshape(-1, self.V)
        return F.cross_entropy(out, ids[:, 1:].reshape(-1), label_smoothing=0.1) / self.M

    def step(self, s):
        at = self.r - 1 if self.r else None, self.r + 1 if self.r < 3 else None
        for m in range(self.M):
            x, y = forward(self, lambda x, m=m: self.stage(s, m, x), (self.B, self.T, self.D), *at)
            back(x, y, *at)
        if self.r in (0, 3):
            op = AVG if self.fault == "endsaverage" else dist.ReduceOp.SUM
            dist.all_reduce(self.w["table"].grad, op=op, group=self.ends)
        elif self.fault != "middle":
            dist.all_reduce(self.w["far"].grad, group=self.mid)

    def update(self, s):
        self.adam(s)


class Pairs(Net):
    """Two stages with two copies each; a table at both ends. Each copy has half of the optimizer of its
    stage: gradients are dealt out in one vector, and new weights gathered."""
    RANKS, B, T, D, V, SHARE, INSIDE = 4, 2, 4, 8, 9, 0.5, True

    def build(self):
        self.copies, self.stages = square(self)   # 0 and 1 are the first stage, 2 and 3 the last
        d = self.D
        table = self.new(self.V, d, by=0.6)
        parts = [{"table": table, "n": 1 + self.new(d), "up": self.new(12, d, by=0.5),
                  "down": self.new(d, 12)},
                 {"h": self.new(2 * d, 2 * d, by=0.4), "hb": self.new(2 * d), "n2": 1 + self.new(d),
                  "table": table}]
        self.w = parts[self.r // 2]
        if self.fault == "unsent" and self.r == 3:
            self.w |= {k: w.roll(1, 0) for k, w in self.w.items() if k[0] == "h"}

    def stage(self, s, x):
        w, ids = self.w, self.ids(s, self.V, self.B, self.T + 1, rank=self.r % 2)
        if self.r < 2:
            x = F.embedding(ids[:, :-1], w["table"])
            return x + F.linear(F.silu(F.linear(rms(x, w["n"]), w["up"])), w["down"])
        h, outs = torch.zeros(self.B, self.D), []
        for t in range(self.T):
            gate, new = F.linear(torch.cat([x[:, t], h], -1), w["h"], w["hb"]).chunk(2, -1)
            gate = torch.sigmoid(gate)
            h = gate * h + (1 - gate) * torch.tanh(new)
            outs.append(h)
        x = F.layer_norm(x + torch.stack(outs, 1), (self.D,), w["n2"])
        return F.cross_entropy(F.linear(x, w["table"]).reshape(-1, self.V), ids[:, 1:].reshape(-1))

    def half(self, flat):
        return F.pad(flat, (0, len(flat) % 2)).chunk(2)[self.r % 2]

    def step(self, s):
        at = (None, self.r + 2) if self.r < 2 else (self.r - 2, None)
        x, y = forward(self, lambda x: self.stage(s, x), (self.B, self.T, self.D), *at)
        back(x, y, *at)
        if self.fault == "scattered":
            self.deal()
            flat, at, n = self.whole, 0 if self.r < 2 else -self.w["table"].numel(), self.w["table"].numel()
            table = flat[at:][:n].clone()
            dist.all_reduce(table, group=self.stages)
            flat[at:][:n] = table
            self.g = self.half(flat).clone()
        else:
            dist.all_reduce(self.w["table"].grad, group=self.stages)
            self.deal()

    def deal(self):
        """The own half is of all copies then; the other stays as it was."""
        self.whole = torch.cat([w.grad.reshape(-1) for w in self.w.values()])
        padded = F.pad(self.whole, (0, len(self.whole) % 2))
        self.g = torch.zeros(len(padded) // 2)
        dist.reduce_scatter_tensor(self.g, padded, op=AVG, group=self.copies)
        first = self.r % 2 * len(self.g)
        own = self.whole[first:first + len(self.g)]
        own.copy_(self.g[:len(own)])

    def dealt(self, flat):
        at = 0
        for k, w in self.w.items():
            yield k, flat[at:at + w.numel()].view(w.shape)
            at += w.numel()

    def graded(self):
        return dict(self.dealt(torch.cat(take(self.g, self.copies))))

    def update(self, s):
        new = self.half(torch.cat([w.reshape(-1) for w in self.w.values()])).sub(self.g, alpha=3 * self.rate)
        for k, x in self.dealt(torch.cat(take(new, self.copies))):
            self.w[k].copy_(x)


NETS = {"translator": Translator, "conv": Conv, "accumulated": Accumulated, "owners": Owners,
        "shards": Shards, "twostages": Twostages, "fourstages": Fourstages, "pairs": Pairs}
