"""Networks of tracked.py whose ranks have stages, parts of the optimizer's vectors, or experts, and their bugs, each
with a report of it."""
import torch
import torch.distributed as dist
import torch.nn.functional as F

from sound_net import AVG, Net, take
from sound_split import push
from sound_state import Zero1

# Bug: its network, the op call that is wrong (or has first what is), its ranks.
FAULTS = {
    # https://github.com/uw-syfi/piper/issues/13 "their gradients are not synchronized before the optimizer step"
    "tied": ("stages", "reduce_scatter_tensor|Torch.cat.0|embedding.*backward|linear.[258].backward", "0123"),
    # https://github.com/NVIDIA/Megatron-LM/issues/844 "reduce-scattered across DP ranks before the embedding gradients
    # are all-reduced across PP[0] & PP[-1]"
    "shardfirst": ("stages", "all_reduce|reduce_scatter_tensor", "0123"),
    # https://github.com/deepspeedai/DeepSpeed/issues/5729 "calculates loss with outputs and labels from different
    # batches"
    "otherlabels": ("stages", "cross_entropy", "23"),
    # https://github.com/pytorch/pytorch/issues/139404 "stage only stores most recent backward result ... sending their
    # activations could give wrong results"
    "recent": ("stages", r"(send|recv).[01]\.", "0123"),
    # https://github.com/NVIDIA-NeMo/Automodel/pull/3530 "Only the last micro-batch was actually training the model":
    # gradients of one stage are thrown away between micro-batches
    "wiped": ("stages", "all_reduce|reduce_scatter_tensor|Torch.cat.0", "23"),
    # https://github.com/pytorch/pytorch/issues/170862 "It returns the norm of partial (local) parameters rather than
    # the norm over all parameters"
    "ownclip": ("vit", r"Torch.(sqrt|clamp).0|Tensor.(__add__.8|__rtruediv__.0|mul_.[0-3])\.", "012"),
    # https://github.com/NVIDIA/Megatron-LM/issues/950 "The weight of the previous step is still used when the parameter
    # is calculated in the forward direction"
    "early": ("vit", "conv2d.0|Tensor.(__getitem__|view).[0-3].forward|all_gather_into_tensor.[34]", "012"),
    # https://github.com/NVIDIA/Megatron-LM/pull/4609 "leaving stale all-gather data in the buffer": gradients are added
    # to it
    "leftover": ("vit", r"step1:(Tensor.add_.0|reduce_scatter_tensor.1)\.", "012"),
    # https://github.com/ServiceNow/Fast-LLM/issues/436 "Optimiser state is not re-loaded ... if the number of ranks
    # (nodes) changes": the rank that is new has none
    "resumed": ("vit", r"step1:Tensor.(mul_.([4-9]|1[0-5])\.|add_|addcmul_)", "2"),
    # https://github.com/facebookresearch/fairseq/issues/4220 "why are the gradients not all-reduced across the MoE
    # group ?"
    "edp": ("moe", r"linear.([1-47-9]|10)\.|Tensor.(div_|(mul_|sub_|__pow__).([5-8]|1[2-5])\.)", "0123"),
    # https://github.com/pytorch/pytorch/issues/160285 "the gradients are doubled with EP=2"; Megatron-LM/pull/5956
    # "Divide expert gradients by the expert-parallel size"
    "doubled": ("moe", r"Tensor.div_|all_reduce.[1-8]\.", "0123"),
    # https://github.com/pytorch/torchtitan/issues/2387 "the weight diverges right after the first step among different
    # TP ranks. The issue is that the gradient coming from downstream the router is not being reduced"
    "router": ("moe", r"all_reduce.1\.|linear.[06]\.|Tensor.((mul_|sub_|__pow__).(3|10)|copy_.[67])\.", "0123"),
    # https://github.com/pytorch/torchtitan/pull/1114 "sync tokens per expert across all DP ranks": without it each rank
    # has other biases
    "ownload": ("moe",
                r"topk|Torch.sign|Tensor.(type_as|__rsub__|add_).[01]\.|Tensor.__add__.[03].forward", "0123"),
    # https://github.com/vllm-project/vllm/pull/52639 "correct for driving the local expert GEMM, but wrong for
    # combine()": rows go back in the order in which experts took them
    "combine": ("moe", r"Torch.cat.[25]\.|Tensor.contiguous.[13]\.|all_to_all_single.[25]\.|index_add", "0123"),
    # https://github.com/NVIDIA/Megatron-LM/pull/5916 "the gradient norm calculations omit some experts, so gradient
    # clipping applies less than expected"
    "expertnorm": ("moe", "Torch.(sqrt|clamp)|Tensor.(__radd__|__add__.(1[2-9]|2[01])|__rtruediv__|mul_)", "0123"),
}


def backward(net, loss):
    net.losses.append(loss.item())
    loss.backward()


class Stages(Net):
    """Two stages in two copies; the table is the head, too. All micro-batches forward, then all back; each copy's
    optimizer has half of a stage's weights in one vector."""
    RANKS, D, V, B, T, M, SHARE, INSIDE, STEPS = 4, 6, 9, 2, 4, 3, 0.5, True, 3

    def build(self):
        pairs = [dist.new_group(p) for p in ([0, 1], [2, 3], [0, 2], [1, 3])]
        self.stage, self.copy = self.r // 2, self.r % 2
        self.copies, self.ends, self.other = pairs[self.stage], pairs[2 + self.copy], (self.r + 2) % 4
        table, at, nf = self.new(self.V, self.D), self.new(self.T, self.D), 1 + self.new(self.D)
        layers = [{f"n{i}": 1 + self.new(self.D), f"u{i}": self.new(10, self.D), f"ub{i}": self.new(10),
                   f"d{i}": self.new(self.D, 10), f"mix{i}": self.new(self.T, self.T)} for i in range(3)]
        if self.stage == 0:
            self.w = {"table": table, "at": at, **layers[0], **layers[1]}
        else:
            self.w = {**layers[2], "nf": nf, "table": table}
        count = sum(w.numel() for w in self.w.values())
        self.rest = count % 2
        self.m, self.v = (torch.zeros((count + self.rest) // 2) for _ in "mv")

    flat_of, dealt = Zero1.flat_of, Zero1.dealt

    def layer(self, x, i):
        x = x + torch.tanh(torch.einsum("qk,bkd->bqd", self.w[f"mix{i}"], x))
        a = F.layer_norm(x, (self.D,), self.w[f"n{i}"])
        return x + F.linear(F.silu(F.linear(a, self.w[f"u{i}"], self.w[f"ub{i}"])), self.w[f"d{i}"])

    def there(self, s, m):
        if self.stage == 0:
            ids = self.ids(s + 10 * m, self.V, self.B, self.T, rank=self.copy)
            x = self.layer(self.layer(F.embedding(ids, self.w["table"]) + self.w["at"], 0), 1)
            dist.send(x.detach(), self.other)
            return x, None
        x = torch.zeros(self.B, self.T, self.D)
        dist.recv(x, self.other)
        x.requires_grad_()
        of = (m + 1) % self.M if self.fault == "otherlabels" else m
        labels = self.ids(s + 10 * of + 50, self.V, self.B, self.T, rank=self.copy)
        out = F.linear(F.layer_norm(self.layer(x, 2), (self.D,), self.w["nf"]), self.w["table"])
        return x, F.cross_entropy(out.view(-1, self.V), labels.view(-1)) / self.M

    def step(self, s):
        kept = [self.there(s, m) for m in range(self.M)]
        for x, loss in kept if self.stage else ():
            if self.fault == "wiped":
                for w in self.w.values():
                    w.grad = None
            backward(self, loss)
        for x, _ in kept:
            if self.stage:
                dist.send(kept[-1][0].grad if self.fault == "recent" else x.grad, self.other)
            else:
                g = torch.zeros(x.shape)
                dist.recv(g, self.other)
                push(self, x, g)
        if self.fault not in ("tied", "shardfirst"):
            dist.all_reduce(self.w["table"].grad, group=self.ends)
        self.share()

    def share(self):
        flat = self.flat_of([w.grad for w in self.w.values()])
        self.part = torch.zeros(len(self.m))
        dist.reduce_scatter_tensor(self.part, flat, op=AVG, group=self.copies)
        if self.fault == "shardfirst":
            flat.chunk(2)[self.copy].copy_(self.part)
            table = dict(self.dealt(flat))["table"]
            dist.all_reduce(table, group=self.ends)
            self.part = flat.chunk(2)[self.copy].clone()

    def graded(self):
        return dict(self.dealt(torch.cat(take(self.part, self.copies))))

    def update(self, s):
        self.m.mul_(0.9).add_(self.part, alpha=0.1)
        self.v.mul_(0.99).addcmul_(self.part, self.part, value=0.01)
        flat = self.flat_of(self.w.values())
        mine = flat.chunk(2)[self.copy].clone()
        root = torch.sqrt(self.v / (1 - 0.99 ** (s + 1))) + 1e-8
        mine.sub_(self.m / (1 - 0.9 ** (s + 1)) / root * (0.2 * self.rate))
        dist.all_gather_into_tensor(flat, mine, group=self.copies)
        for k, x in self.dealt(flat):
            self.w[k].copy_(x)


class Held(torch.autograd.Function):
    """A unit's weights, which have been gathered; gradients are averaged, and dealt out. over: what lay in the memory
    of the gradient before."""

    @staticmethod
    def forward(ctx, part, whole, over):
        ctx.over = over
        return whole.clone()

    @staticmethod
    def backward(ctx, g):
        g = g.clone(memory_format=torch.contiguous_format)
        if ctx.over is not None:
            g.add_(ctx.over)
        out = torch.zeros(len(g) // dist.get_world_size())
        dist.reduce_scatter_tensor(out, g, op=AVG)
        return out, None, None


class Vit(Net):
    """Patches of images; each of three ranks has a third of each unit's weights, moments and gradients. The first unit
    of the next step is gathered at the end of a step. Clipped by the norm of all; AdamW."""
    RANKS, D, H, B, C, INSIDE, STEPS = 3, 8, 2, 3, 5, True, 3
    UNITS = {"stem": {"patch": (8, 3, 4, 4), "pb": (8,), "cls": (1, 1, 8), "at": (5, 8)},
             **{f"block{i}": {"n": (8,), "nb": (8,), "qkv": (24, 8), "qkvb": (24,), "o": (8, 8), "m": (8,),
                              "u": (13, 8), "ub": (13,), "d": (8, 13)} for i in range(2)},
             "head": {"n": (8,), "nb": (8,), "fc": (5, 8), "b": (5,)}}

    def build(self):
        for unit, shapes in self.UNITS.items():
            whole = torch.cat([(self.new(*d) + (k in "nm")).reshape(-1) for k, d in shapes.items()])
            whole = F.pad(whole, (0, -len(whole) % self.n))
            self.w[unit] = whole.chunk(self.n)[self.r].clone()
        self.first = None

    def gathered(self, unit):
        whole = torch.zeros(len(self.w[unit]) * self.n)
        dist.all_gather_into_tensor(whole, self.w[unit].detach())
        return whole

    def unit(self, k, s):
        whole = self.first if k == "stem" and self.first is not None else self.gathered(k)
        over = whole if self.fault == "leftover" and s > 0 and k == "block1" else None
        flat, at, out = Held.apply(self.w[k], whole, over), 0, {}
        for name, shape in self.UNITS[k].items():
            size = torch.Size(shape).numel()
            out[name] = flat[at:at + size].view(shape)
            at += size
        return out

    def block(self, x, w):
        qkv = F.linear(F.layer_norm(x, (self.D,), w["n"], w["nb"]), w["qkv"], w["qkvb"])
        q, k, v = qkv.view(self.B, -1, 3, self.H, self.D // self.H).permute(2, 0, 3, 1, 4).unbind(0)
        p = F.softmax(torch.matmul(q, k.transpose(-1, -2)) * (self.D // self.H) ** -0.5, -1)
        x = x + F.linear(torch.matmul(p, v).transpose(1, 2).reshape(x.shape), w["o"])
        return x + F.linear(F.gelu(F.linear(F.layer_norm(x, (self.D,), w["m"]), w["u"], w["ub"])), w["d"])

    def step(self, s):
        w = self.unit("stem", s)
        x = F.conv2d(self.data(s, self.B, 3, 8, 8), w["patch"], w["pb"], stride=4).flatten(2).transpose(1, 2)
        x = torch.cat([w["cls"].expand(self.B, -1, -1), x], 1) + w["at"]
        for i in range(2):
            x = self.block(x, self.unit(f"block{i}", s))
        w = self.unit("head", s)
        out = F.linear(F.layer_norm(x[:, 0], (self.D,), w["n"], w["nb"]), w["fc"], w["b"])
        backward(self, F.cross_entropy(out, self.ids(s + 50, self.C, self.B)))

    def update(self, s):
        squares = sum((w.grad ** 2).sum() for w in self.w.values())
        if self.fault != "ownclip":
            dist.all_reduce(squares)
        by = torch.clamp(0.5 / (torch.sqrt(squares) + 1e-6), max=1.0)
        for w in self.w.values():
            w.grad.mul_(by)
        if self.fault == "resumed" and s == 1 and self.r == 2:
            self.moments = {k: [torch.zeros_like(m), torch.zeros_like(v), t] for k, (m, v, t) in self.moments.items()}
        if self.fault == "early":
            self.first = self.gathered("stem")
        self.adam(s, decay=0.05)
        if self.fault != "early":
            self.first = self.gathered("stem")


class Swapped(torch.autograd.Function):
    """Rows to the ranks of a group, in one operand; the number of each is given."""

    @staticmethod
    def forward(ctx, x, sent, taken, group):
        ctx.how = sent, taken, group
        out = torch.zeros((sum(taken),) + x.shape[1:], dtype=x.dtype)
        dist.all_to_all_single(out, x.contiguous(), taken, sent, group=group)
        return out

    @staticmethod
    def backward(ctx, g):
        sent, taken, group = ctx.how
        return Swapped.forward(ctx, g, taken, sent, group), None, None, None


class Moe(Net):
    """Two ranks share four experts, in two copies; a word's two experts are those with the highest scores plus a bias,
    which goes up for experts with less than the mean of all ranks' words, and down for others. Clipped."""
    RANKS, D, T, E, K, H, C, INSIDE, STEPS = 4, 6, 6, 4, 2, 7, 5, True, 3

    def build(self):
        pairs = [dist.new_group(p) for p in ([0, 1], [2, 3], [0, 2], [1, 3])]
        self.ep, self.edp, self.per = pairs[self.r // 2], pairs[2 + self.r % 2], self.E // 2
        self.mine = range(self.r % 2 * self.per, (self.r % 2 + 1) * self.per)
        self.w = {"embed": self.new(9, self.D, by=1.0), "out": self.new(self.C, self.D)}
        for i in range(2):
            self.w |= {f"n{i}": 1 + self.new(self.D), f"r{i}": self.new(self.E, self.D),
                       f"s{i}": self.new(self.D, self.D)}
            for e in range(self.E):
                u, d = self.new(self.H, self.D), self.new(self.D, self.H)
                if e in self.mine:
                    self.w |= {f"u{i}{e}": u, f"d{i}{e}": d}
        self.bias, self.load = [torch.zeros(self.E) for _ in range(2)], [None, None]

    def expert(self, i, x, counts):
        """What this rank's experts make of rows, of which there are some from each rank for each."""
        pieces = list(x.split(counts))
        outs = [None] * len(pieces)
        made = []
        for j, e in enumerate(self.mine):
            got = pieces[j::self.per]
            y = F.linear(F.silu(F.linear(torch.cat(got), self.w[f"u{i}{e}"])), self.w[f"d{i}{e}"])
            outs[j::self.per] = y.split([len(p) for p in got])
            made.append(y)
        return torch.cat(made if self.fault == "combine" else outs)

    def routed(self, i, a):
        p = torch.sigmoid(F.linear(a, self.w[f"r{i}"]))
        top = torch.topk(p.detach() + self.bias[i], self.K, -1)[1].flatten()
        self.load[i] = torch.bincount(top, minlength=self.E)
        order = torch.sort(top, stable=True)[1]
        counts, other = self.load[i].clone(), torch.zeros(self.E, dtype=torch.long)
        dist.all_to_all_single(other, counts, group=self.ep)
        sent, taken = ([sum(c[:self.per]), sum(c[self.per:])] for c in (counts.tolist(), other.tolist()))
        x = Swapped.apply(a[order // self.K], sent, taken, self.ep)
        back = Swapped.apply(self.expert(i, x, other.tolist()), taken, sent, self.ep)
        by = p[order // self.K, top[order]].unsqueeze(1)
        return torch.zeros(a.shape).index_add(0, order // self.K, back * by)

    def step(self, s):
        x = F.embedding(self.ids(s, 9, self.T), self.w["embed"])
        for i in range(2):
            a = F.layer_norm(x, (self.D,), self.w[f"n{i}"])
            x = x + self.routed(i, a) + F.relu(F.linear(a, self.w[f"s{i}"]))
        backward(self, F.cross_entropy(F.linear(x, self.w["out"]), self.ids(s + 50, self.C, self.T)))
        self.reduced()

    def reduced(self):
        experts = [k for k in self.w if k[0] in "ud"]
        routers = ["r0", "r1"] if self.fault == "router" else []
        self.bucket([k for k in self.w if k not in experts + routers])
        if routers:
            self.bucket(routers, group=self.ep)
        if self.fault != "edp":
            self.each(group=self.edp, names=experts)
        for k in experts:
            if self.w[k].grad is not None:
                self.w[k].grad.div_(2 if self.fault == "doubled" else self.n)

    def update(self, s):
        square = {k: (w.grad ** 2).sum() for k, w in self.w.items() if w.grad is not None}
        parts = sum(x for k, x in square.items() if k[0] in "ud")
        if self.fault != "expertnorm":
            dist.all_reduce(parts, group=self.ep)
        norm = torch.sqrt(parts + sum(x for k, x in square.items() if k[0] not in "ud"))
        by = torch.clamp(0.3 / (norm + 1e-6), max=1.0)
        for k in square:
            self.w[k].grad.mul_(by)
            self.w[k].sub_(self.w[k].grad, alpha=5 * self.rate)
        for i in range(2):
            load = self.load[i].type_as(self.bias[i])
            if self.fault != "ownload":
                dist.all_reduce(load)
            # Of whole numbers, which no noise may turn.
            self.bias[i].add_(torch.sign(float(load.numpy().mean()) - load), alpha=0.05)


NETS = {"stages": Stages, "vit": Vit, "moe": Moe}
