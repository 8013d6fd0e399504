"""Networks of reported.py of whose weights or optimizer each rank has a part, and their bugs, each with a report of
it."""
import torch
import torch.distributed as dist
import torch.nn.functional as F

from sound_net import AVG, LOW, Net, take

# Bug: its network, the op call that is wrong (or has first what is), its ranks.
FAULTS = {
    # https://github.com/NVIDIA/Megatron-LM/issues/561 "when .numel != .numel(), the distributed optimizer would produce
    # wrong results": where a rank's part begins is counted without what is added at the end
    "offset": ("mixed", r"Tensor.(__getitem__|add_|addcmul_).0\.", "12"),
    # https://github.com/deepspeedai/DeepSpeed/issues/2343 "Stage2 would get faulty gradient if parameters on different
    # ranks get their gradients on different order"
    "hookorder": ("mixed", r"Torch.cat.0\.|Functional.pad.0\.|Tensor.reshape.[0-6]\.|all_reduce.0\.", "012"),
    # https://github.com/deepspeedai/DeepSpeed/pull/762 "the FP16 weights are correct but FP32 master weights are still
    # the random values"
    "oldmaster": ("mixed", r"Tensor.(sub_|contiguous).0\.|all_gather.0\.", "1"),
    # https://github.com/deepspeedai/DeepSpeed/issues/5283 "merging in order isn't particularly correct"
    "gatherorder": ("mixed", r"Torch.cat.1\.|Tensor.(__getitem__.[1-7]|(view|copy_).[0-6])\.", "012"),
    # https://github.com/pytorch/pytorch/pull/125484 "the preceding microbatch's gradients will not be contributed
    # across the replica group. (In other words, we cannot simply accumulate after all-reduce.)"
    "lastonly": ("hsdp", r"all_reduce.[0-3]\.|Tensor.add_.[0-3]\.", "0123"),
    # https://github.com/ByteDance-Seed/VeOmni/pull/862 "Each shard group is replicated across dp_replicate, so reducing
    # over the full group over-counts the norm"
    "normall": ("hsdp", r"all_reduce.4\.|Torch.(sqrt|clamp).0|Tensor.(__rtruediv__.0|mul_.[0-3])\.", "0123"),
    # https://github.com/allenai/OLMo-core/pull/319 "replica 1 has completely different parameters than replica 2"
    "replicas": ("hsdp",
                 r"Tensor.contiguous.[0-3]\.|all_gather_into_tensor.[0-3]\.|(embedding|layer_norm|linear).0.forward",
                 "0123"),
}


def backward(net, loss):
    net.losses.append(loss.item())
    loss.backward()


class Mixed(Net):
    """Weights of few bits; gradients of all go into one vector, which is averaged. Each of three ranks has a third of
    the weights with more bits, of Adam's moments and of the step; what is new is gathered."""
    RANKS, B, D, C, INSIDE = 3, 4, 6, 4, True

    def build(self):
        d, low = self.D, LOW["bfloat16"]
        every = {"u": self.new(10, d, by=0.5), "ub": self.new(10), "n": 1 + self.new(10), "nb": self.new(10),
                 "d": self.new(d, 10, by=0.5), "out": self.new(self.C, d, by=0.5), "ob": self.new(self.C)}
        self.w = {k: w.to(low) for k, w in every.items()}
        self.count = sum(w.numel() for w in self.w.values())
        self.size = -(-self.count // self.n)
        self.main = self.part(self.flat(self.w.values())).clone()
        if self.fault == "oldmaster" and self.r == 1:
            seed = torch.Generator().manual_seed(9)
            self.main = 0.3 * torch.randn(self.size, generator=seed)
        self.m, self.v = torch.zeros(self.size), torch.zeros(self.size)

    def more(self, x):
        return x.float() if x.dtype == torch.bfloat16 else x

    def flat(self, xs):
        flat = torch.cat([self.more(x).reshape(-1) for x in xs])
        return F.pad(flat, (0, self.size * self.n - self.count))

    def part(self, flat, size=None):
        first = self.r * (size or self.size)
        return flat[first:first + self.size]

    def dealt(self, flat):
        at = 0
        for k, w in self.w.items():
            yield k, flat[at:at + w.numel()].view(w.shape)
            at += w.numel()

    def step(self, s):
        w = {k: self.more(x) for k, x in self.w.items()}
        x = F.linear(self.data(s, self.B, self.D), w["u"], w["ub"])
        x = F.linear(F.silu(F.layer_norm(x, (10,), w["n"], w["nb"])), w["d"])
        out = F.linear(torch.tanh(x), w["out"], w["ob"])
        backward(self, F.cross_entropy(out, self.ids(s + 50, self.C, self.B)))
        names = list(self.w)
        if self.fault == "hookorder" and self.r == 1:
            names = names[1:] + names[:1]
        self.sum = self.flat([self.w[k].grad for k in names])
        dist.all_reduce(self.sum, op=AVG)

    def graded(self):
        return dict(self.dealt(self.sum))

    def update(self, s):
        g = self.part(self.sum, self.count // self.n if self.fault == "offset" else None)
        self.m.mul_(0.9).add_(g, alpha=0.1)
        self.v.mul_(0.99).addcmul_(g, g, value=0.01)
        root = (self.v / (1 - 0.99 ** (s + 1))).sqrt() + 1e-8
        self.main.sub_(self.m / (1 - 0.9 ** (s + 1)) / root * (0.3 * self.rate))
        parts = take(self.main)
        flat = torch.cat(parts[::-1] if self.fault == "gatherorder" else parts)
        for k, x in self.dealt(flat):
            self.w[k].copy_(x)


class Sharded(torch.autograd.Function):
    """A unit's weights of all parts of a group; gradients are averaged over it, and dealt out."""

    @staticmethod
    def forward(ctx, part, group):
        ctx.group = group
        whole = torch.zeros(len(part) * dist.get_world_size(group))
        dist.all_gather_into_tensor(whole, part.contiguous(), group=group)
        return whole

    @staticmethod
    def backward(ctx, g):
        out = torch.zeros(len(g) // dist.get_world_size(ctx.group))
        dist.reduce_scatter_tensor(out, g.contiguous(), op=AVG, group=ctx.group)
        return out, None


class Hsdp(Net):
    """Two ranks have half of each unit's weights each, and two others the same halves; gradients of two micro-batches
    are dealt out in a pair and added, then averaged over the pairs. Clipped by the norm of both halves; with decay."""
    RANKS, B, T, D, V, M, INSIDE = 4, 2, 4, 6, 9, 2, True
    UNITS = {"embed": {"table": (9, 6)},
             **{f"layer{i}": {"n": (6,), "i": (18, 6), "h": (18, 6), "o": (6, 6)} for i in range(2)},
             "head": {"n": (6,), "out": (9, 6), "b": (9,)}}

    def build(self):
        pairs = [dist.new_group(p) for p in ([0, 1], [2, 3], [0, 2], [1, 3])]
        self.shard, self.copies = pairs[self.r // 2], pairs[2 + self.r % 2]
        for unit, shapes in self.UNITS.items():
            flat = torch.cat([(self.new(*d, by=0.5) + (k == "n")).reshape(-1) for k, d in shapes.items()])
            if self.fault == "replicas" and self.r > 1:
                flat = flat * 0.5 + flat.roll(1) * 0.5
            self.w[unit] = F.pad(flat, (0, len(flat) % 2)).chunk(2)[self.r % 2].clone()

    def unit(self, k):
        flat, at, out = Sharded.apply(self.w[k], self.shard), 0, {}
        for name, shape in self.UNITS[k].items():
            size = torch.Size(shape).numel()
            out[name] = flat[at:at + size].view(shape)
            at += size
        return out

    def layer(self, x, w):
        """A cell with gates over words."""
        i = F.linear(F.layer_norm(x, (self.D,), w["n"]), w["i"])
        h, outs = torch.zeros(self.B, self.D), []
        for t in range(self.T):
            f, o, c = (i[:, t] + F.linear(h, w["h"])).chunk(3, -1)
            f = torch.sigmoid(f)
            h = f * h + (1 - f) * torch.tanh(c)
            outs.append(torch.sigmoid(o) * h)
        return x + F.linear(torch.stack(outs, 1), w["o"])

    def loss(self, s, m):
        ids = self.ids(s + 10 * m, self.V, self.B, self.T + 1)
        x = F.embedding(ids[:, :-1], self.unit("embed")["table"])
        for i in range(2):
            x = self.layer(x, self.unit(f"layer{i}"))
        w = self.unit("head")
        out = F.linear(F.layer_norm(x, (self.D,), w["n"]), w["out"], w["b"])
        return F.cross_entropy(out.reshape(-1, self.V), ids[:, 1:].reshape(-1)) / self.M

    def step(self, s):
        kept = {}
        for m in range(self.M):
            if m and self.fault == "lastonly":
                kept = {k: w.grad for k, w in self.w.items()}
                for w in self.w.values():
                    w.grad = None
            backward(self, self.loss(s, m))
        self.each(AVG, self.copies)
        for k, g in kept.items():
            self.w[k].grad.add_(g)

    def update(self, s):
        square = sum((w.grad * w.grad).sum() for w in self.w.values())
        dist.all_reduce(square, group=None if self.fault == "normall" else self.shard)
        by = torch.clamp(0.3 / (torch.sqrt(square) + 1e-6), max=1.0)
        for w in self.w.values():
            w.grad.mul_(by)
            w.sub_(w.grad + 0.01 * w, alpha=3 * self.rate)


NETS = {"mixed": Mixed, "hsdp": Hsdp}
