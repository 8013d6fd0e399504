"""Networks of reported.py whose ranks share out weights, a sequence, layers or experts, and their bugs, each with a
report of it."""
import torch
import torch.distributed as dist
import torch.nn.functional as F

from sound_net import Gather, Net, Same, Sum
from sound_split import Exchange, Worded, push

# Bug: its network, the op call that is wrong (or has first what is), its ranks.
FAULTS = {
    # https://github.com/pytorch/pytorch/issues/157606 "Both DTensor TP and SP are missing the last collective in the
    # backward pass"; https://github.com/pytorch/torchtitan/issues/1805
    "colgrad": ("gated", r"(linear.[34]|Tensor.__mul__.4).backward|Tensor.(__pow__|mul_|sub_).9\.", "01"),
    # https://github.com/tenstorrent/tt-metal/pull/31748 "Avoid double all_reduce in backward pass";
    # https://github.com/inclusionAI/AReno/pull/496 "all-reduced again ..., causing a second reduction"
    "backtwice": ("gated", r"all_reduce.[78]\.|Tensor.__mul__.4.backward", "01"),
    # https://github.com/lightseekorg/tokenspeed/pull/80 "allreduced the already-full MLP output as if it were a
    # per-rank partial sum, doubling its contribution"
    "rowtwice": ("gated", r"all_reduce.[12]\.|Tensor.__add__.3.forward", "01"),
    # https://github.com/pytorch/torchtitan/pull/4637 "With padding_idx=5, token 37 maps to local row 5, and the
    # original code incorrectly suppresses its gradient"
    "padrow": ("gated", r"embedding.0\.", "1"),
    # https://github.com/NVIDIA-NeMo/RL/pull/3788 "parameters the plan marks as replicated are counted tp_size times";
    # https://github.com/ROCm/TransformerEngine/pull/715, https://github.com/mindspore-ai/hyper-parallel/issues/526
    "dupnorm": ("gated",
                r"all_reduce.9\.|Torch.(sqrt|clamp).0|Tensor.(__add__.(1[7-9]|2[0-4])|__rtruediv__.0|mul_.\d+)\.",
                "01"),
    # https://github.com/deepspeedai/DeepSpeed/issues/7199 "Data inconsistency within the TP group"
    "tpdata": ("gated",
               r"Tensor.(__add__|__getitem__|__lt__|__sub__|masked_fill).0.forward|embedding.0.forward|all_reduce.0\.",
               "01"),
    # https://github.com/state-spaces/mamba/issues/597 "padding conv layer input chunks on each GPU with the last
    # N_padding tokens of the previous GPU"; without it the filter sees zeros
    "nohalo": ("recurrent", r"Functional.pad.1\.|Tensor.transpose.0.forward|conv1d.0.forward", "12"),
    # https://github.com/mindspore-ai/hyper-parallel/issues/511 each rank that begins with a state of zeros is wrong
    "nostate": ("recurrent", "(Tensor.(__mul__|__add__).[1-9]|Torch.stack.0|linear.3).forward", "12"),
    # https://github.com/huggingface/transformers/pull/36607 "when sharded ... we lose label 5 once shifted"
    "boundary": ("recurrent",
                 r"Functional.pad.1\.|Tensor.(__getitem__.1.forward|reshape.1|__ne__.0)|cross_entropy.0|all_reduce.0\.",
                 "01"),
    # https://github.com/pytorch/pytorch/issues/127964 "always assuming that it receives from its neighbor ranks ...
    # which is not the case with skip connections"
    "skiplost": ("unet", r"(relu|Torch.cat).[01].backward|(send|recv).[0-3]\.", "02"),
    # https://github.com/pytorch/PiPPy/pull/1070 "will accumulate gradients into leaf tensors by default. For gradients
    # to pass back to previous stages, we don't want such accumulation"
    "keptgrad": ("unet", r"(send|recv).[23]\.|silu.1.backward", "012"),
    # https://github.com/pytorch/torchtitan/issues/596 "will only compute the grad norm based on the modules of the
    # current PP stage"; https://github.com/PaddlePaddle/Paddle/pull/74080
    "stageclip": ("unet", r"Torch.(sqrt|clamp).0|Tensor.(__add__.[0-3].forward|(__rtruediv__.0|mul_.[0-2])\.)", "012"),
    # https://github.com/deepseek-ai/DeepEP/issues/58 "The tokens for each expert isn't contiguous?": rows that came by
    # rank are taken for rows by expert
    "chunks": ("switch", "Tensor.split.0.forward|Torch.cat.[0-2].forward|linear.[13].forward", "01"),
    # https://github.com/pytorch/torchtitan/pull/1013 "Re-enable backward for on-device all_to_all_v"
    "nograd": ("switch", r"(linear.[13]|layer_norm.0).backward|all_to_all_single.[1-4]\.|Tensor.__getitem__.0\.", "01"),
    # https://github.com/microsoft/Tutel/issues/161 "can not distinguish experts and other shared parameters. And
    # experts may be updated with shared gradient"
    "sharedexperts": ("switch", r"Torch.cat.4\.|all_reduce.1\.|Tensor.(view.1[2-9]|copy_.[6-9])\.", "01"),
}


def backward(net, loss):
    net.losses.append(loss.item())
    loss.backward()


class Gated(Net):
    """Tensor parallel, all words on both ranks; a table with a row for padding, which one of the two has; gates and the
    head are split by columns, what follows gates by rows. Clipped by the norm of all."""
    V, D, FF, T, B, PAD, INSIDE = 14, 8, 12, 5, 4, 3, True

    def build(self):
        d = self.D
        self.w = {"table": self.split(self.new(self.V, d, by=1.0), 0), "nf": 1 + self.new(d),
                  "head": self.split(self.new(self.V, d), 0)}
        for i in range(2):
            self.w |= {f"n{i}": 1 + self.new(d), f"mix{i}": self.new(self.T, self.T),
                       f"g{i}": self.split(self.new(self.FF, d, by=0.5), 0),
                       f"u{i}": self.split(self.new(self.FF, d, by=0.5), 0),
                       f"d{i}": self.split(self.new(d, self.FF, by=0.5), 1), f"b{i}": self.new(d)}

    def norm(self, x, k):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.w[k]

    def looked(self, ids):
        size = len(self.w["table"])
        other = (ids < self.r * size) | (ids >= (self.r + 1) * size)
        pad = self.PAD if self.r == 0 or self.fault == "padrow" else None
        x = F.embedding((ids - self.r * size).masked_fill(other, 0), self.w["table"], pad)
        return Sum.apply(x.masked_fill(other.unsqueeze(-1), 0.0))

    def fed(self, i, x):
        a = self.norm(x, f"n{i}")
        if self.fault != "colgrad" or i == 0:
            a = Same.apply(a)
        if self.fault == "backtwice" and i == 1:
            a = Same.apply(a)
        y = F.linear(F.silu(F.linear(a, self.w[f"g{i}"])) * F.linear(a, self.w[f"u{i}"]), self.w[f"d{i}"])
        y = Sum.apply(y)
        if self.fault == "rowtwice" and i == 0:
            y = Sum.apply(y)
        return x + y + self.w[f"b{i}"]

    def words(self, seed):
        """No padding."""
        ids = self.ids(seed, self.V - 1, self.B, self.T + 1, rank=self.r if self.fault == "tpdata" else 0)
        return ids + (ids >= self.PAD).long()

    def step(self, s):
        ids = self.words(s)
        x = self.looked(ids[:, :-1])
        for i in range(2):
            x = x + torch.einsum("qk,bkd->bqd", self.w[f"mix{i}"], x)
            x = self.fed(i, x)
        out = F.linear(Same.apply(self.norm(x, "nf")), self.w["head"])
        backward(self, Worded.apply(out, ids[:, 1:], None).mean())

    def update(self, s):
        split = ("table", "head", "g0", "g1", "u0", "u1", "d0", "d1")
        square = {k: (w.grad ** 2).sum() for k, w in self.w.items()}
        parts = sum(x for k, x in square.items() if k in split)
        rest = sum(x for k, x in square.items() if k not in split)
        if self.fault == "dupnorm":
            parts = parts + rest
        dist.all_reduce(parts)
        norm = torch.sqrt(parts if self.fault == "dupnorm" else parts + rest)
        by = torch.clamp(0.3 / (norm + 1e-6), max=1.0)
        for w in self.w.values():
            w.grad.mul_(by)
            w.sub_(w.grad, alpha=5 * self.rate)


class Recurrent(Net):
    """Parts of a sequence on three ranks, one after the other; a causal filter, which needs the last words of the rank
    before, and a state that decays, which goes on from what that rank ends with. The loss is of all ranks' words."""
    RANKS, V, D, T, B, K, SHARE = 3, 11, 6, 4, 2, 3, 1

    def build(self):
        d = self.D
        self.w = {"embed": self.new(self.V, d, by=1.0), "conv": self.new(d, 1, self.K), "cb": self.new(d),
                  "a": self.new(d, d), "v": self.new(d, d), "g": self.new(d, d), "o": self.new(d, d),
                  "n": 1 + self.new(d), "nb": self.new(d), "head": self.new(self.V, d)}

    def filtered(self, x):
        if self.fault == "nohalo":
            x = F.pad(x, (0, 0, self.K - 1, 0))
        else:
            ends = Gather.apply(x[:, 1 - self.K:].contiguous(), 1).chunk(self.n, 1)
            x = torch.cat([ends[self.r - 1] if self.r else ends[-1] * 0.0, x], 1)
        x = F.conv1d(x.transpose(1, 2), self.w["conv"], self.w["cb"], groups=self.D)
        return F.silu(x).transpose(1, 2)

    def states(self, a, u):
        """Of each word, from 0 at this rank's first, and what is left of what was before."""
        h, left, hs, lefts = torch.zeros(self.B, self.D), torch.ones(self.B, self.D), [], []
        for t in range(self.T):
            h = a[:, t] * h + u[:, t]
            left = a[:, t] * left
            hs.append(h)
            lefts.append(left)
        hs, lefts = torch.stack(hs, 1), torch.stack(lefts, 1)
        if self.fault == "nostate":
            return hs
        every = Gather.apply(torch.stack([h, left]).unsqueeze(0), 0)
        first, firsts = torch.zeros(self.B, self.D), []
        for r in range(self.n):
            firsts.append(first)
            first = every[r, 1] * first + every[r, 0]
        return hs + lefts * torch.stack(firsts)[self.r].unsqueeze(1)

    def labels(self, whole):
        labels = F.pad(whole[:, 1:], (0, 1), value=-100).chunk(self.n, 1)[self.r]
        if self.fault == "boundary":
            return F.pad(whole.chunk(self.n, 1)[self.r][:, 1:], (0, 1), value=-100)
        return labels

    def step(self, s):
        whole = self.ids(s, self.V, self.B, self.T * self.n, rank=0)
        labels = self.labels(whole)
        x = F.embedding(whole.chunk(self.n, 1)[self.r], self.w["embed"])
        c = self.filtered(x)
        a = torch.sigmoid(F.linear(c, self.w["a"]) + 1.0)
        h = self.states(a, F.linear(c, self.w["v"]) * (1 - a))
        x = x + F.linear(h * F.silu(F.linear(c, self.w["g"])), self.w["o"])
        out = F.linear(F.layer_norm(x, (self.D,), self.w["n"], self.w["nb"]), self.w["head"])
        count = torch.tensor(float((labels != -100).numpy().sum()))
        dist.all_reduce(count)
        loss = F.cross_entropy(out.reshape(-1, self.V), labels.reshape(-1), ignore_index=-100, reduction="sum")
        backward(self, loss / count)
        self.each()

    def update(self, s):
        self.momentum()


class Unet(Net):
    """Three stages, of which the last takes what the first has made, too. One micro-batch after the other goes there
    and back; what is taken lies in the same memory for all. Clipped by the norm of all stages; momentum."""
    RANKS, B, C, M, SHARE, INSIDE = 3, 2, 4, 2, 1, True

    def build(self):
        c, shape = self.C, (self.B, self.C, 4, 4)
        every = {"c0": self.new(c, 3, 3, 3), "b0": self.new(c), "c1": self.new(c, c, 3, 3), "g1": 1 + self.new(c),
                 "b1": self.new(c), "c2": self.new(3, 2 * c, 3, 3), "b2": self.new(3)}
        self.w = {k: w for k, w in every.items() if k[1] == str(self.r)}
        self.taken = {r: torch.zeros(shape) for r in range(self.r)} if self.r != 1 else {0: torch.zeros(shape)}

    def take(self, r):
        x = self.taken[r].requires_grad_()
        if x.grad is not None and self.fault != "keptgrad":
            x.grad.zero_()
        with torch.no_grad():
            dist.recv(x, r)
        return x

    def first(self, s, m):
        x = F.relu(F.conv2d(self.data(s + 10 * m, self.B, 3, 4, 4, rank=0), self.w["c0"], self.w["b0"], padding=1))
        dist.send(x.detach(), 1)
        dist.send(x.detach(), 2)
        g = torch.zeros(x.shape)
        dist.recv(g, 1)
        if self.fault != "skiplost":
            skip = torch.zeros(x.shape)
            dist.recv(skip, 2)
            g = g + skip
        push(self, x, g)

    def middle(self):
        x = self.take(0)
        y = F.group_norm(F.conv2d(x, self.w["c1"], padding=1), 2, self.w["g1"], self.w["b1"])
        y = F.silu(y)
        dist.send(y.detach(), 2)
        g = torch.zeros(y.shape)
        dist.recv(g, 2)
        push(self, y, g)
        dist.send(x.grad, 0)

    def last(self, s, m):
        skip, y = self.take(0), self.take(1)
        out = F.conv2d(torch.cat([y, skip], 1), self.w["c2"], self.w["b2"], padding=1)
        backward(self, F.mse_loss(out, self.data(s + 10 * m + 50, *out.shape, rank=0)) / self.M)
        dist.send(y.grad, 1)
        if self.fault != "skiplost":
            dist.send(skip.grad, 0)

    def step(self, s):
        for x in self.taken.values():
            x.grad = None
        for m in range(self.M):
            if self.r == 1:
                self.middle()
            else:
                (self.last if self.r else self.first)(s, m)

    def update(self, s):
        square = sum((w.grad ** 2).sum() for w in self.w.values())
        if self.fault != "stageclip":
            dist.all_reduce(square)
        by = torch.clamp(0.2 / (torch.sqrt(square) + 1e-6), max=1.0)
        for w in self.w.values():
            w.grad.mul_(by)
        self.momentum()


class Switch(Net):
    """Each word goes to the best of four experts, of which each rank has two; rows come grouped by rank, then by
    expert. What keeps scores small is in the loss. The rest is averaged; momentum."""
    V, D, T, E, H, C, INSIDE = 9, 6, 8, 4, 7, 5, True

    def build(self):
        self.per = self.E // self.n
        self.mine = range(self.r * self.per, (self.r + 1) * self.per)
        self.w = {"embed": self.new(self.V, self.D, by=1.0), "n": 1 + self.new(self.D), "nb": self.new(self.D),
                  "route": self.new(self.E, self.D, by=1.0), "out": self.new(self.C, self.D), "ob": self.new(self.C)}
        for e in range(self.E):
            u, d = self.new(self.H, self.D, by=0.5), self.new(self.D, self.H, by=0.5)
            if e in self.mine:
                self.w |= {f"u{e}": u, f"d{e}": d}

    def experts(self, x, counts):
        order = [e for _ in range(self.n) for e in self.mine]
        if self.fault == "chunks":
            order = [e for e in self.mine for _ in range(self.n)]
            counts = [c for j in range(self.per) for c in counts[j::self.per]]
        pieces, outs = list(x.split(counts)), [None] * len(counts)
        for e in self.mine:
            at = [i for i, other in enumerate(order) if other == e]
            y = F.linear(F.gelu(F.linear(torch.cat([pieces[i] for i in at]), self.w[f"u{e}"])), self.w[f"d{e}"])
            for i, piece in zip(at, y.split([counts[i] for i in at])):
                outs[i] = piece
        return torch.cat(outs)

    def routed(self, a):
        scores = F.linear(a, self.w["route"])
        p = F.softmax(scores, -1)
        top = torch.topk(p.detach(), 1, -1)[1].flatten()
        order = torch.sort(top, stable=True)[1]
        counts, other = torch.bincount(top, minlength=self.E), torch.zeros(self.E, dtype=torch.long)
        dist.all_to_all_single(other, counts)
        sent, taken = ([int(c.numpy().sum()) for c in x.chunk(self.n)] for x in (counts, other))
        rows = a[order]
        x = Exchange.apply(rows.detach() if self.fault == "nograd" else rows, sent, taken)
        back = Exchange.apply(self.experts(x, other.tolist()), taken, sent)
        y = back[torch.argsort(order)] * p[torch.arange(len(top)), top].unsqueeze(1)
        return y, torch.logsumexp(scores, -1).pow(2).mean()

    def step(self, s):
        x = F.embedding(self.ids(s, self.V, self.T), self.w["embed"])
        y, large = self.routed(F.layer_norm(x, (self.D,), self.w["n"], self.w["nb"]))
        loss = F.cross_entropy(F.linear(x + y, self.w["out"], self.w["ob"]), self.ids(s + 50, self.C, self.T))
        backward(self, loss + 0.01 * large)
        own = [k for k in self.w if k[0] in "ud"]
        self.bucket([k for k in self.w if k not in own])
        if self.fault == "sharedexperts":
            self.bucket(own)
        else:
            for k in own:
                self.w[k].grad.div_(self.n)

    def update(self, s):
        self.momentum()


NETS = {"gated": Gated, "recurrent": Recurrent, "unet": Unet, "switch": Switch}
