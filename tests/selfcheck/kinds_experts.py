"""Networks of kinds.py with routers and experts, and their bugs, each with a report of it."""
import torch
import torch.distributed as dist
import torch.nn.functional as F

from kinds_split import attend, part, rms, square
from sound_net import AVG, Deal, Fetch, Net, Same, Sum

# Bug: its network, the op call that is wrong (or has first what is), its ranks.
FAULTS = {
    # https://github.com/pytorch/torchtitan/pull/2416 "MoE router weights diff on each rank due to a missing
    # all reduce"
    "gatepart": ("halves", r"linear.4.backward|Tensor.chunk.0.backward|einsum.0.backward", "01"),
    # https://github.com/NVIDIA/Megatron-LM/issues/599 "routers within the same tensor parallelism group":
    # here by noise of which each rank draws its own
    "jitter": ("halves", r"Tensor.(__mul__.[78]|__add__.3).forward|linear.4.forward", "01"),
    # https://github.com/deepspeedai/DeepSpeed/pull/5156 "Fix capacity when using TP for non-MoE"
    "capacity": ("dropped", r"Tensor.(__lt__.0|__getitem__.0|__mul__.1).forward", "2"),
    # https://github.com/EleutherAI/gpt-neox/pull/1257 summed over tensor-parallel ranks: here what is whole
    # on each
    "gatesum": ("dropped", r"all_reduce.2\.|linear.1.backward", "012"),
    # https://github.com/deepspeedai/DeepSpeed/issues/1838 "expert_data_parallel_group": experts of all ranks
    # are averaged, be they the same or not
    "worldgroup": ("exchanged", r"all_reduce.[1-4]\.", "0123"),
    # https://github.com/NVIDIA-NeMo/Megatron-Bridge/pull/5396 "use the expert RNG tracker, whose seed
    # differs": here routers are begun with it
    "gateseed": ("exchanged", r"linear.[01].forward", "0123"),
    # https://github.com/pytorch/pytorch/issues/160285 "the gradients are doubled with EP=2"
    "undivided": ("gathered", r"linear.[23].backward", "012"),
    # https://github.com/ScienceOne-AI/DeepSeek-671B-SFT-Guide/issues/16 a bias of routing that follows counts
    # of "TPxCPxDP" ranks, and so is the same on all: here one has it from another state
    "oldbias": ("gathered", r"Tensor.__add__.1.forward|topk.0.forward", "1"),
    # https://github.com/pytorch/torchtitan/pull/4154 "didn't reduce routing bias over TP axis"
    "localbias": ("shared", r"Tensor.(__mul__.4|__rsub__.0|add_.0|__add__.0).forward|sign.0\.", "01"),
    # https://github.com/NVIDIA-NeMo/Megatron-Bridge/pull/6009 shared expert weights, "but Megatron-Core's
    # expert DDP only reduces them over expert-DP"
    "sharedsplit": ("shared", r"linear.[12].backward|Tensor.div_.[01]\.", "01"),
    # https://github.com/facebookresearch/fairseq/issues/4220 "expert parameters are simply skipped for the
    # allreduce"
    "skipped": ("slots", r"matmul.[12].backward|Tensor.(__add__.0.backward|div_.[0-2]\.)", "0123"),
    # https://github.com/deepspeedai/DeepSpeed/pull/6546 "divide edp_world_size -> divide dp_world_size"
    "fewer": ("slots", r"all_reduce.0\.|Tensor.div_.[0-2]\.", "0123"),
}


def backward(net, loss):
    """A line of this file, which is where recordings say that gradients come from."""
    net.losses.append(loss.item())
    loss.backward()


def places(chosen):
    """Which place of its expert's each token has, of what has been chosen as one-hot rows. No sum(), to which
    a noisy device would add."""
    return torch.max(torch.cumsum(chosen, 0) * chosen, -1)[0] - 1


class Halves(Net):
    """Both ranks have all words, and half of the heads and experts each; the best two experts of a word, with
    weights that sum to one; the router sees noise, the same on both."""
    B, T, D, V, E = 2, 4, 8, 9, 4

    def build(self):
        d = self.D
        self.w = {"table": self.new(self.V, d, by=0.6), "n1": 1 + self.new(d), "n2": 1 + self.new(d),
                  "gate": self.new(self.E, d, by=0.8), "nf": 1 + self.new(d),
                  "out": self.new(self.V, d, by=0.5)}
        for k in "qkv":
            self.w[k] = part(self.new(d, d, by=0.6), 0)
        self.w["o"] = part(self.new(d, d), 1)
        self.w |= {"up": part(self.new(self.E, d, 12, by=0.4), 0),
                   "down": part(self.new(self.E, 12, d, by=0.4), 0)}

    def experts(self, h, s):
        own = self.r if self.fault == "jitter" else 0
        noise = torch.rand(h.shape, generator=torch.Generator().manual_seed(40 + s + 7 * own)) * 0.4 + 0.8
        probs = F.softmax(F.linear(h * noise, self.w["gate"]), -1)
        best, which = torch.topk(probs, 2, -1)
        best = best / best.sum(-1, keepdim=True)
        weights = torch.einsum("nk,nke->ne", best, F.one_hot(which, self.E).to(h.dtype)).chunk(2, -1)[self.r]
        hid = F.silu(torch.einsum("nd,edf->nef", h, self.w["up"]))
        return Sum.apply(torch.einsum("nef,efd,ne->nd", hid, self.w["down"], weights))

    def step(self, s):
        w = self.w
        ids = self.ids(s, self.V, self.B, self.T + 1, rank=0)
        x = F.embedding(ids[:, :-1], w["table"])
        h = Same.apply(rms(x, w["n1"]))
        x = x + Sum.apply(F.linear(attend(*(F.linear(h, w[k]) for k in "qkv"), 1), w["o"]))
        h = Same.apply(rms(x, w["n2"])).reshape(-1, self.D)
        x = x.reshape(-1, self.D) + self.experts(h, s)
        backward(self, F.cross_entropy(F.linear(rms(x, w["nf"]), w["out"]), ids[:, 1:].reshape(-1)))
        if self.fault != "gatepart":
            self.each(names=["gate"])

    def update(self, s):
        self.adam(s)


class Dropped(Net):
    """Three ranks with a third of each expert's hidden units; a word goes to one expert, if there is place; a
    loss of balance is added. The router is whole on each rank."""
    RANKS, N, D, E, C = 3, 9, 8, 3, 3

    def build(self):
        d = self.D
        self.w = {"in": self.new(d, 6, by=0.6), "n": 1 + self.new(d), "nb": self.new(d),
                  "gate": self.new(self.E, d),
                  "up": part(self.new(self.E, d, 12, by=0.5), 2),
                  "down": part(self.new(self.E, 12, d, by=0.5), 1),
                  "out": self.new(4, d, by=0.5), "ob": self.new(4)}

    def step(self, s):
        w = self.w
        x = torch.tanh(F.linear(self.data(s, self.N, 6, rank=0), w["in"]))
        h = F.layer_norm(x, (self.D,), w["n"], w["nb"])
        probs = F.softmax(F.linear(h, w["gate"]), -1)
        p, which = torch.max(probs, -1)
        one = F.one_hot(which, self.E)
        room = self.C - 2 * (self.fault == "capacity" and self.r == 2)
        kept = (one * (places(one) < room)[:, None]).to(x.dtype)
        # not gelu, for which torch 1.13 reads beyond the gradient that einsum gives it in another order
        hid = F.silu(torch.einsum("nd,edf->nef", Same.apply(h), w["up"]))
        y = Sum.apply(torch.einsum("nef,efd,ne->nd", hid, w["down"], kept))
        balance = (one.to(x.dtype).mean(0) * probs.mean(0)).sum() * self.E
        out = F.linear(x + y * p[:, None], w["out"], w["ob"])
        loss = F.cross_entropy(out, self.ids(s + 50, 4, self.N, rank=0), label_smoothing=0.05)
        backward(self, loss + 0.1 * balance)
        if self.fault == "gatesum":
            self.each(names=["gate"])

    def update(self, s):
        self.momentum()


class Exchange(torch.autograd.Function):
    """The rows of each rank from each rank."""

    @staticmethod
    def forward(ctx, x, group=None):
        ctx.group = group
        got = torch.zeros(x.shape, dtype=x.dtype)
        dist.all_to_all_single(got, x.contiguous(), group=group)
        return got

    @staticmethod
    def backward(ctx, g):
        return Exchange.forward(ctx, g, ctx.group), None


def exchanged(x, group, expert):
    """expert(x) of slots (experts, places, width), each on the rank that has it."""
    n = dist.get_world_size(group)
    e, c, d = x.shape
    x = Exchange.apply(x.reshape(n, e // n, c, d), group).transpose(0, 1).reshape(e // n, n * c, d)
    x = expert(x).reshape(e // n, n, c, d).transpose(0, 1)
    return Exchange.apply(x.contiguous(), group).reshape(e, c, d)


class Exchanged(Net):
    """Four ranks with words of their own; pairs exchange these, as either has two of four experts, which the
    other pair has, too. The best expert of each word; two such layers."""
    RANKS, N, D, E = 4, 6, 8, 4

    def build(self):
        self.ep, self.edp = square(self)
        d = self.D
        self.w = {"table": self.new(10, d, by=0.6), "out": self.new(5, d, by=0.5), "nf": 1 + self.new(d)}
        for i in range(2):
            gate = self.new(self.E, d, by=0.7)
            if self.fault == "gateseed" and self.r > 1:
                gate = 0.7 * torch.randn(gate.shape, generator=torch.Generator().manual_seed(90 + i))
            self.w |= {f"n{i}": 1 + self.new(d), f"gate{i}": gate,
                       f"up{i}": part(self.new(self.E, d, 10, by=0.5), 0, self.ep),
                       f"down{i}": part(self.new(self.E, 10, d, by=0.5), 0, self.ep)}

    def layer(self, x, i):
        h = rms(x, self.w[f"n{i}"])
        p, which = torch.max(F.softmax(F.linear(h, self.w[f"gate{i}"]), -1), -1)
        one = F.one_hot(which, self.E)
        to = (one[..., None] * F.one_hot(places(one), self.N)[:, None]).to(x.dtype)
        y = exchanged(torch.einsum("nec,nd->ecd", to, h), self.ep, lambda z: torch.matmul(
            F.silu(torch.matmul(z, self.w[f"up{i}"])), self.w[f"down{i}"]))
        return x + torch.einsum("nec,ecd->nd", to, y) * p[:, None]

    def step(self, s):
        x = F.embedding(self.ids(s, 10, self.N), self.w["table"])
        for i in range(2):
            x = self.layer(x, i)
        out = F.linear(rms(x, self.w["nf"]), self.w["out"])
        backward(self, F.cross_entropy(out, self.ids(s + 50, 5, self.N)))
        own = [k for k in self.w if k[:2] in ("up", "do")]
        self.bucket([k for k in self.w if k not in own])
        for k in own:
            dist.all_reduce(self.w[k].grad, group=None if self.fault == "worldgroup" else self.edp)
            self.w[k].grad.div_(self.n)

    def update(self, s):
        self.adam(s, decay=0.05)


class Gathered(Net):
    """Three ranks with an expert each, to which all words of all ranks are gathered; sums are dealt out. The
    best two of sigmoid scores, for whose choice a bias counts; squared errors, smoothed."""
    RANKS, N, D = 3, 5, 8

    def build(self):
        d = self.D
        self.w = {"in": self.new(d, 5, by=0.6), "ib": self.new(d), "n": 1 + self.new(d),
                  "gate": self.new(3, d),
                  "out": self.new(3, d, by=0.5)}
        every = {"up": self.new(3, 12, d, by=0.5), "ub": self.new(3, 12), "down": self.new(3, d, 12, by=0.5)}
        self.w |= {k: w[self.r].clone() for k, w in every.items()}
        self.bias = torch.tensor([0.05, 0.0, -0.05])
        if self.fault == "oldbias" and self.r == 1:
            self.bias = torch.tensor([-0.4, 0.3, 0.1])

    def step(self, s):
        w = self.w
        x = F.silu(F.linear(self.data(s, self.N, 5), w["in"], w["ib"]))
        h = Fetch.apply(rms(x, w["n"]))
        scores = torch.sigmoid(F.linear(h, w["gate"]))
        which = torch.topk(scores + self.bias, 2, -1)[1]
        chosen = F.one_hot(which, 3).sum(1).to(x.dtype) * scores
        weight = (chosen / chosen.sum(-1, keepdim=True))[:, self.r]
        y = F.linear(F.gelu(F.linear(h, w["up"], w["ub"])), w["down"]) * weight[:, None]
        out = F.linear(x + Deal.apply(y), w["out"])
        backward(self, F.smooth_l1_loss(out, self.data(s + 50, self.N, 3)))
        own = ["up", "ub", "down"]
        self.each(AVG, names=[k for k in w if k not in own])
        if self.fault != "undivided":
            for k in own:
                w[k].grad.div_(self.n)


class Shared(Net):
    """Two ranks with words of their own and two of four experts, and one expert that both have and each word
    meets; a bias of the router follows how many words each expert had on both."""
    N, D, E = 6, 8, 4

    def build(self):
        d = self.D
        self.w = {"table": self.new(12, d, by=0.6), "n": 1 + self.new(d), "nb": self.new(d),
                  "gate": self.new(self.E, d, by=0.7), "shared.up": self.new(10, d, by=0.5),
                  "shared.down": self.new(d, 10, by=0.5),
                  "experts.up": part(self.new(self.E, d, 6, by=0.5), 0),
                  "experts.down": part(self.new(self.E, 6, d, by=0.5), 0), "out": self.new(6, d, by=0.5)}
        self.bias = torch.zeros(self.E)

    def step(self, s):
        w = self.w
        x = F.embedding(self.ids(s, 12, self.N), w["table"])
        h = F.layer_norm(x, (self.D,), w["n"], w["nb"])
        probs = F.softmax(F.linear(h, w["gate"]), -1)
        which = torch.argmax(probs + self.bias, -1)
        one = F.one_hot(which, self.E)
        to = (one[..., None] * F.one_hot(places(one), self.N)[:, None]).to(x.dtype)
        y = exchanged(torch.einsum("nec,nd->ecd", to, h), None, lambda z: torch.matmul(
            F.relu(torch.matmul(z, w["experts.up"])), w["experts.down"]))
        y = torch.einsum("nec,ecd->nd", to, y) * (probs * one).sum(-1, keepdim=True)
        y = y + F.linear(F.relu(F.linear(h, w["shared.up"])), w["shared.down"])
        loss = F.cross_entropy(F.linear(x + y, w["out"]), self.ids(s + 50, 6, self.N), reduction="sum")
        backward(self, loss / self.N)
        kinds = ("experts", "shared") if self.fault == "sharedsplit" else ("experts",)
        split = [k for k in w if k.startswith(kinds)]
        for k in split:
            w[k].grad.div_(self.n)
        self.bucket([k for k in w if k not in split])
        counts, most = torch.bincount(which, minlength=self.E).to(x.dtype), self.N
        if self.fault != "localbias":
            dist.all_reduce(counts)
            most *= self.n
        # signs of whole numbers, so that noise turns none
        self.bias.add_(torch.sign(most - counts * self.E), alpha=0.6)


class Slots(Net):
    """Images whose patches are mixed into slots of four experts, of which a pair of ranks has two each and
    the other pair the same; no choice but weights. GroupNorm, a mean of squares."""
    RANKS, B, T, D, E = 4, 2, 6, 8, 4

    def build(self):
        self.ep, self.edp = square(self)
        d = self.D
        self.w = {"conv": self.new(d, 3, 2, by=0.5), "cb": self.new(d), "g": 1 + self.new(d),
                  "gb": self.new(d),
                  "phi": self.new(d, self.E, by=0.6), "head": self.new(2, d, by=0.5), "hb": self.new(2)}
        self.w |= {"up": part(self.new(self.E, d, 12, by=0.4), 0, self.ep),
                   "ub": part(self.new(self.E, 1, 12, by=0.4), 0, self.ep),
                   "down": part(self.new(self.E, 12, d, by=0.4), 0, self.ep)}

    def step(self, s):
        w = self.w
        x = F.conv1d(self.data(s, self.B, 3, 2 * self.T), w["conv"], w["cb"], stride=2)
        x = F.group_norm(x, 2, w["g"], w["gb"]).transpose(1, 2)
        mix = torch.matmul(x, w["phi"])
        slots = torch.einsum("bte,btd->ebd", F.softmax(mix, 1), x)
        y = exchanged(slots, self.ep, lambda z: torch.matmul(
            F.gelu(torch.matmul(z, w["up"]) + w["ub"]), w["down"]))
        x = x + torch.einsum("bte,ebd->btd", F.softmax(mix, 2), y)
        out = F.linear(torch.mean(x, 1), w["head"], w["hb"])
        backward(self, F.mse_loss(out, self.data(s + 50, self.B, 2)))
        own = ["up", "ub", "down"]
        if self.fault == "skipped":
            for k in own:
                w[k].grad.div_(2)
        else:
            self.bucket(own, dist.ReduceOp.SUM, self.edp)
            for k in own:
                w[k].grad.div_(2 if self.fault == "fewer" else self.n)
        self.bucket([k for k in w if k not in own])

    def update(self, s):
        self.momentum(by=0.8)


NETS = {"halves": Halves, "dropped": Dropped, "exchanged": Exchanged, "gathered": Gathered, "shared": Shared,
        "slots": Slots}
