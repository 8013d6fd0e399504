"""Networks of tracked.py that are copies on all ranks, of other samples, and their bugs, each with a report of it."""
import torch
import torch.distributed as dist
import torch.nn.functional as F

from sound_net import AVG, Deal, Gather, Net, take

# Bug: its network, the op call that is wrong (or has first what is), its ranks.
FAULTS = {
    # https://github.com/modelscope/FunASR/pull/3472 "synchronizes the first microbatch and suppresses synchronization
    # on the optimizer-step microbatch, leaving rank-local accumulated gradients"
    "firstsync": ("speech",
                  r"all_reduce.1\.|Tensor.(mul_|add_|addc|sqrt_)|(conv1d.1|linear.(1[5-9]|2[0-9])).backward", "012"),
    # https://github.com/pytorch/torchtitan/pull/2206 "per-rank/per-microbatch normalization, which caused incorrect
    # gradient weighting when different ranks or microbatches had different numbers of valid tokens"
    "meanofmeans": ("speech", r"cross_entropy|Tensor.__truediv__.[01]\.|all_reduce.0|Torch.div", "012"),
    # https://github.com/OpenNMT/OpenNMT-py/issues/2295 "the all_reduce operation is async, the communication may have
    # not complemented yet when the div_ operation is revoked"
    "unwaited": ("speech",
                 r"all_reduce.1\.|Tensor.(__getitem__.(1[4-9]|20).forward|copy_|mul_|add_|addcmul_)", "012"),
    # https://github.com/meta-pytorch/torchrec/issues/2251 "the data gradient passed to FBGEMM_GPU are divided by the
    # world size", where the others' are sums
    "rowdiv": ("tables", "Tensor.(div_|addc(mul|div)_.0)|embedding.0.backward", "01"),
    # https://github.com/meta-pytorch/torchrec/issues/1739 "DMP doesn't broadcast DataParallel ShardingType embedding
    # table from the process with rank 0 to all other processes"
    "unlikestart": ("tables", "embedding.1.forward", "01"),
    # https://github.com/mlfoundations/open_clip/issues/616, issues/894 "local_loss must be with gather_with_grad=True"
    "gathernograd": ("pairs", "all_gather|Torch.cat|(__matmul__|Tensor.t|normalize).[01].backward", "012"),
    # https://github.com/nomewang/M3DM/issues/7 labels of a rank's rows and of all: "makes an error"
    "ownlabels": ("pairs", "cross_entropy", "12"),
    # https://github.com/THUDM/slime/pull/2235 "advantages are whitened with per-CP-rank statistics instead of global
    # ones"
    "ownwhite": ("policy",
                 "Torch.(stack|rsqrt)|Tensor.(sum.[012]|__getitem__.[0-3]|__truediv__.[01]|__sub__.[01]|__mul__.[345]).f",
                 "01"),
    # https://github.com/NovaSky-AI/SkyRL/pull/925 "worker minibatches with fewer tokens were weighted more heavily
    # (since DDP all-reduce takes a mean across minibatches)"
    "minibatchmean": ("policy", r"Tensor.(sum.4|__truediv__.2)\.|all_reduce.1\.|Torch.div", "01"),
    # https://github.com/Robbyant/lingbot-vla-v2/issues/41 "all ranks draw identical noise and timestep values at every
    # step"
    "samenoise": ("diffusion2",
                  "Torch.(outer|sin|cos)|mse_loss|Tensor.(__mul__.[0-3]|view.[01]|__rsub__.[01]).forward", "01"),
    # https://github.com/pytorch/pytorch/issues/69031 "Parameters unused on the final step but used on previous steps
    # are never synced"
    "unusedlast": ("diffusion2",
                   r"all_reduce.0|(conv2d|group_norm).1\.|Tensor.((mul_|add_).([89]|1[0-3])|addc(mul|div)_.[456])\.",
                   "01"),
    # https://github.com/ecmwf/WeatherGenerator/issues/2724 "An anomalous loss on any rank skips the batch on all
    # ranks"; https://github.com/facebookresearch/fairscale/issues/180 "some ranks could skip and others try to step"
    "ownskip": ("diffusion2", "Tensor.(mul_|add_|addc|sqrt_)|(conv2d|linear|group_norm).0.forward", "01"),
    # https://github.com/pytorch/pytorch/issues/22192 "the argument count is different between gpu0 and gpu1"
    "unlikecount": ("syncbn", "all_reduce.0|Tensor.(div_|__getitem__.[0-3].forward|__sub__.0|__mul__.1)", "012"),
    # https://github.com/pytorch/pytorch/pull/36382 "doesn't account the mean_dy/mean_dy_xmu on backward path, which
    # produces wrong dgrad"
    "dgrad": ("syncbn", "all_reduce.1|conv2d.0.backward|Tensor.(__truediv__|__sub__).[34].forward", "012"),
    # https://github.com/sony/nnabla/pull/1120 "all-reduce of gradients for beta and gamma are performed twice"
    "twice": ("syncbn", r"all_reduce.[12]|Tensor.(__getitem__.[78]|copy_.[12])\.", "012"),
    # https://github.com/open-mmlab/mmdetection/issues/2539 "broadcast_buffers=False makes BN buffers different on each
    # GPU"
    "ownbuffers": ("syncbn", "batch_norm", "012"),
}


def backward(net, loss):
    net.losses.append(loss.item())
    loss.backward()


class Speech(Net):
    """A filter over frames, a recurrent layer with gates and labels of frames; two micro-batches, of which each rank
    has other lengths; the loss is that of all frames of all; AdamW."""
    RANKS, C, D, T, V, M, SHARE, INSIDE = 3, 4, 6, 7, 8, 2, 1, True

    def build(self):
        self.w = {"conv": self.new(self.D, self.C, 3), "cb": self.new(self.D), "ih": self.new(3 * self.D, self.D),
                  "hh": self.new(3 * self.D, self.D), "hb": self.new(3 * self.D), "out": self.new(self.V, self.D),
                  "ob": self.new(self.V)}

    def frames(self, x):
        x = F.leaky_relu(F.conv1d(x, self.w["conv"], self.w["cb"], padding=1), 0.1).transpose(1, 2)
        h, outs = torch.zeros(x.shape[0], self.D), []
        for t in range(self.T):
            r, z, n = F.linear(x[:, t], self.w["ih"], self.w["hb"]).chunk(3, -1)
            hr, hz, hn = F.linear(h, self.w["hh"]).chunk(3, -1)
            z = torch.sigmoid(z + hz)
            h = (1 - z) * torch.tanh(n + torch.sigmoid(r + hr) * hn) + z * h
            outs.append(h)
        return F.linear(torch.stack(outs, 1), self.w["out"], self.w["ob"])

    def labels(self, s, m):
        labels = self.ids(s + 10 * m + 50, self.V, 2, self.T)
        for b in range(2):
            labels[b, self.T - (2 * self.r + b + m) % (self.T - 1):] = -100
        return labels

    def step(self, s):
        own = torch.tensor(float(sum((self.labels(s, m) >= 0).numpy().sum() for m in range(self.M))))
        count = own.clone()
        if self.fault != "meanofmeans":
            dist.all_reduce(count)
        for m in range(self.M):
            out = self.frames(self.data(s + 10 * m, 2, self.C, self.T)).reshape(-1, self.V)
            backward(self, F.cross_entropy(out, self.labels(s, m).view(-1), ignore_index=-100, reduction="sum") / count)
            if self.fault == "firstsync" and m == 0:
                self.bucket(op=dist.ReduceOp.SUM)
        if self.fault == "meanofmeans":
            self.bucket()
        elif self.fault == "unwaited":
            self.unwaited()
        elif self.fault != "firstsync":
            self.bucket(op=dist.ReduceOp.SUM)

    def unwaited(self):
        """What a collective leaves that ends after what follows it: the optimizer has each rank's own gradients."""
        flat = torch.cat([w.grad.view(-1) for w in self.w.values()])
        before, at = flat.numpy().copy(), 0
        dist.all_reduce(flat)
        flat.numpy()[:] = before
        for w in self.w.values():
            w.grad.copy_(flat[at:at + w.numel()].view(w.shape))
            at += w.numel()

    def update(self, s):
        self.adam(s, decay=0.01)


class Tables(Net):
    """Two ranks have half of a large table's rows each, and a copy of a small table; rows are looked up for all ranks'
    samples and their sums dealt out; products of features; Adagrad. The loss is the mean of all samples."""
    V, D, B, SHARE, INSIDE = 12, 5, 4, 1, True

    def build(self):
        self.w = {"rows": self.split(self.new(self.V, self.D), 0), "small": self.new(6, self.D),
                  "b1": self.new(self.D, 3), "bb": self.new(self.D), "t1": self.new(8, self.D + 3), "tb": self.new(8),
                  "t2": self.new(1, 8)}
        if self.fault == "unlikestart" and self.r:
            self.w["small"] = self.w["small"].roll(1, 0)

    def bags(self, ids):
        size = len(self.w["rows"])
        every = torch.cat(take(ids))
        other = (every < self.r * size) | (every >= (self.r + 1) * size)
        x = F.embedding((every - self.r * size).masked_fill(other, 0), self.w["rows"])
        return Deal.apply(x.masked_fill(other.unsqueeze(-1), 0.0).sum(1))

    def step(self, s):
        one = self.bags(self.ids(s, self.V, self.B, 3))
        two = F.embedding(self.ids(s + 20, 6, self.B), self.w["small"])
        dense = F.relu(F.linear(self.data(s, self.B, 3), self.w["b1"], self.w["bb"]))
        x = torch.stack([one, two, dense], 1)
        cross = torch.bmm(x, x.transpose(1, 2)).flatten(1)[:, [1, 2, 5]]
        out = F.linear(F.relu(F.linear(torch.cat([dense, cross], 1), self.w["t1"], self.w["tb"])), self.w["t2"])
        want = self.ids(s + 50, 2, self.B, 1).type_as(out)
        backward(self, F.binary_cross_entropy_with_logits(out, want, reduction="sum") / (self.n * self.B))
        if self.fault == "rowdiv":
            self.w["rows"].grad.div_(self.n)
        self.bucket([k for k in self.w if k != "rows"], op=dist.ReduceOp.SUM)

    def update(self, s):
        for k, w in self.w.items():
            v = self.moments.setdefault(k, torch.full(w.shape, 0.1))
            v.addcmul_(w.grad, w.grad)
            w.addcdiv_(w.grad, v.sqrt().add_(1e-8), value=-self.rate)


class Pairs(Net):
    """Two towers, for pixels and for words; each of three ranks has rows of what is alike, and all columns."""
    RANKS, B, D, V = 3, 3, 6, 13

    def build(self):
        self.w = {"conv": self.new(4, 3, 3, 3), "img": self.new(self.D, 4), "words": self.new(self.V, self.D, by=1.0),
                  "n": 1 + self.new(self.D), "txt": self.new(self.D, self.D), "scale": 1 + self.new(1)}

    def all_of(self, x):
        if self.fault == "gathernograd":
            every = take(x.detach())
            every[self.r] = x
            return torch.cat(every)
        return Gather.apply(x)

    def step(self, s):
        x = F.relu(F.conv2d(self.data(s, self.B, 3, 6, 6), self.w["conv"], stride=2))
        img = F.normalize(F.linear(x.mean((2, 3)), self.w["img"]), dim=-1)
        x = F.embedding(self.ids(s + 20, self.V, self.B, 4), self.w["words"]).mean(1)
        txt = F.normalize(F.linear(F.layer_norm(x, (self.D,), self.w["n"]), self.w["txt"]), dim=-1)
        scale = self.w["scale"].exp()
        first = 0 if self.fault == "ownlabels" else self.r * self.B
        labels = torch.arange(first, first + self.B)
        a = F.cross_entropy(scale * (img @ self.all_of(txt).t()), labels)
        b = F.cross_entropy(scale * (txt @ self.all_of(img).t()), labels)
        backward(self, (a + b) / 2)
        self.each(AVG)

    def update(self, s):
        self.momentum()


class Policy(Net):
    """Answers of unlike lengths that other weights have given, whose advantages have mean 0 and variance 1 over all
    ranks' words; ratios are clipped; the loss is the mean of all words; Adam."""
    D, V, B, T, SHARE, INSIDE = 6, 9, 3, 6, 1, True

    def build(self):
        self.w = {"embed": self.new(self.V, self.D, by=1.0), "mix": self.new(self.T, self.T), "n": 1 + self.new(self.D),
                  "u": self.new(12, self.D), "d": self.new(self.D, 12), "out": self.new(self.V, self.D)}
        self.before = {k: (w + self.new(*w.shape, by=0.1)).detach() for k, w in self.w.items()}

    def chances(self, ids, w):
        x = F.embedding(ids[:, :-1], w["embed"])
        x = x + torch.einsum("qk,bkd->bqd", w["mix"] * torch.ones(self.T, self.T).tril(), x)
        x = x + F.linear(F.silu(F.linear(F.layer_norm(x, (self.D,), w["n"]), w["u"])), w["d"])
        every = F.log_softmax(F.linear(x, w["out"]), -1)
        return torch.gather(every, -1, ids[:, 1:].unsqueeze(-1)).squeeze(-1)

    def whitened(self, x, mask):
        sums = torch.stack([(x * mask).sum(), (x * x * mask).sum(), mask.sum()])
        if self.fault != "ownwhite":
            dist.all_reduce(sums)
        mean = sums[0] / sums[2]
        return (x - mean) * torch.rsqrt(sums[1] / sums[2] - mean * mean + 1e-8) * mask

    def step(self, s):
        ids = self.ids(s, self.V, self.B, self.T + 1)
        long = torch.tensor([[2, 5, 6], [3, 1, 4]][self.r])
        mask = (torch.arange(self.T).unsqueeze(0) < long.unsqueeze(1)).type_as(self.w["n"])
        good = self.whitened(self.data(s + 20, self.B, self.T) + self.r, mask)
        now, old = self.chances(ids, self.w), self.chances(ids, self.before)
        ratio = torch.exp(now - old)
        loss = -torch.minimum(ratio * good, torch.clamp(ratio, 0.8, 1.2) * good)
        far = old - now
        loss = (loss + 0.1 * (far.exp() - far - 1)) * mask
        count = mask.sum()
        if self.fault != "minibatchmean":
            dist.all_reduce(count)
        backward(self, loss.sum() / count)
        self.bucket(op=AVG if self.fault == "minibatchmean" else dist.ReduceOp.SUM)

    def update(self, s):
        self.adam(s)


class Diffusion2(Net):
    """Noise that is to be seen in images, each sample at its time; a middle layer is left out of some micro-batches, of
    the same on all ranks; a step is left out where any rank's loss is high, as rank 1's is once; Adam."""
    D, B, M, INSIDE, STEPS = 4, 2, 2, True, 3

    def build(self):
        self.w = {"in": self.new(self.D, 3, 3, 3), "time": self.new(self.D, 6), "g": 1 + self.new(self.D),
                  "gb": self.new(self.D), "mid": self.new(self.D, self.D, 3, 3), "mg": 1 + self.new(self.D),
                  "mb": self.new(self.D), "out": self.new(3, self.D, 3, 3)}

    def seen(self, x, t, with_mid):
        angle = torch.outer(t, 10.0 ** torch.arange(3).type_as(t))
        emb = F.silu(F.linear(torch.cat([torch.sin(angle), torch.cos(angle)], 1), self.w["time"]))
        h = F.conv2d(x, self.w["in"], padding=1) + emb.unsqueeze(-1).unsqueeze(-1)
        h = F.silu(F.group_norm(h, 2, self.w["g"], self.w["gb"]))
        if with_mid:
            h = h + F.silu(F.group_norm(F.conv2d(h, self.w["mid"], padding=1), 2, self.w["mg"], self.w["mb"]))
        return F.conv2d(h, self.w["out"], padding=1)

    def step(self, s):
        torch.manual_seed(1000 * self.seed + 10 * s + (0 if self.fault == "samenoise" else self.r))
        self.losses.clear()
        for m in range(self.M):
            x, t = self.data(s + 10 * m, self.B, 3, 4, 4), torch.rand(self.B)
            noise, by = torch.randn(x.shape), t.view(-1, 1, 1, 1)
            out = self.seen(x * (1 - by) + noise * by, t, with_mid=m == 0 or s == 1)
            want = noise * 30 if s == 1 and self.r == 1 else noise
            backward(self, F.mse_loss(out, want) / self.M)
        self.bucket([k for k in self.w if k[0] != "m" or s == 1] if self.fault == "unusedlast" else None)
        self.high = torch.tensor(float(sum(self.losses) > 50))
        if self.fault != "ownskip":
            dist.all_reduce(self.high, op=dist.ReduceOp.MAX)

    def update(self, s):
        if not self.high:
            self.adam(s)


class Normed(torch.autograd.Function):
    """Normalization by mean and variance of all ranks' samples, of which each has another number."""

    @staticmethod
    def forward(ctx, x, weight, bias, fault):
        own = torch.full((1,), float(x.numel() // x.shape[1]))
        sums = torch.cat([x.sum((0, 2, 3)), (x * x).sum((0, 2, 3)), own])
        c = x.shape[1]
        if fault == "unlikecount":
            sums[:2 * c].div_(own)
            dist.all_reduce(sums)
            sums[:2 * c].div_(dist.get_world_size())
            mean, square = sums[:c], sums[c:2 * c]
        else:
            dist.all_reduce(sums)
            mean, square = sums[:c] / sums[-1], sums[c:2 * c] / sums[-1]
        scale = torch.rsqrt(square - mean * mean + 1e-5)
        y = (x - mean.view(1, -1, 1, 1)) * scale.view(1, -1, 1, 1)
        ctx.save_for_backward(y, weight, scale)
        ctx.how = fault, sums[-1], own
        return y * weight.view(1, -1, 1, 1) + bias.view(1, -1, 1, 1)

    @staticmethod
    def backward(ctx, g):
        y, weight, scale = ctx.saved_tensors
        fault, count, own = ctx.how
        sums = torch.cat([g.sum((0, 2, 3)), (g * y).sum((0, 2, 3))])
        mine = sums.clone()
        dist.all_reduce(sums)
        c = len(weight)
        by = own * dist.get_world_size() if fault == "dgrad" else count
        a, b = (sums[:c] / by).view(1, -1, 1, 1), (sums[c:] / by).view(1, -1, 1, 1)
        x = (g - a - y * b) * (weight * scale).view(1, -1, 1, 1)
        mine = sums if fault == "twice" else mine
        return x, mine[c:], mine[:c], None


class Syncbn(Net):
    """Images of which each of three ranks has another number; the first norm is that of all, the second each rank's own
    with the means of rank 0's steps, by which what comes out is to be the same as by the batch; momentum."""
    RANKS, C, K, SHARE, STEPS = 3, 4, 5, 1, 3

    def build(self):
        c = self.C
        self.w = {"c1": self.new(c, 3, 3, 3), "g1": 1 + self.new(c), "b1": self.new(c), "c2": self.new(c, c, 3, 3),
                  "g2": 1 + self.new(c), "b2": self.new(c), "fc": self.new(self.K, c), "fb": self.new(self.K)}
        self.mean, self.var = torch.zeros(c), torch.ones(c)

    def step(self, s):
        count = (4, 2, 3)[self.r]
        if self.fault != "ownbuffers":
            dist.broadcast(self.mean, 0)
            dist.broadcast(self.var, 0)
        x = F.conv2d(self.data(s, count, 3, 5, 5), self.w["c1"], padding=1)
        x = F.relu(Normed.apply(x, self.w["g1"], self.w["b1"], self.fault))
        x = F.conv2d(x, self.w["c2"], padding=1)
        fixed = F.batch_norm(x, self.mean.clone(), self.var.clone(), self.w["g2"], self.w["b2"])
        x = F.batch_norm(x, self.mean, self.var, self.w["g2"], self.w["b2"], training=True)
        far = (x - fixed).pow(2).mean((1, 2, 3)).sum()
        out = F.linear(F.relu(x).mean((2, 3)), self.w["fc"], self.w["fb"])
        loss = F.cross_entropy(out, self.ids(s + 50, self.K, count), reduction="sum")
        backward(self, (loss + 0.1 * far) / 9)
        self.bucket(op=dist.ReduceOp.SUM)

    def update(self, s):
        self.momentum()


NETS = {"speech": Speech, "tables": Tables, "pairs": Pairs, "policy": Policy, "diffusion2": Diffusion2,
        "syncbn": Syncbn}
