"""Programs of programs.py whose model or sample is in parts: experts, a mixture with capacity and all_to_all;
stages, a pipeline of micro-batches with a tied embedding; scan, a state space model whose sequence is split;
unet, diffusion with images that are split."""
import math

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from programs_base import Draw, Exchange, Gather, Reduce, SumBoth, grids, kept, total, world

D, EXPERTS, SLOTS = 12, 4, 3


class Capacity(nn.Module):
    """The best of four experts for each token, while it has slots; x is (shards, tokens, D)."""
    def __init__(self, draw, first, held, group):
        super().__init__()
        self.group, self.held = group, held
        self.router = nn.Linear(D, EXPERTS, bias=False)
        self.router.weight.data = draw(EXPERTS, D)
        self.register_buffer("favour", torch.zeros(EXPERTS))
        up, down = draw(EXPERTS, D, D), draw(EXPERTS, D, D)
        self.up = nn.ParameterList(nn.Parameter(up[first + e].clone()) for e in range(held))
        self.down = nn.ParameterList(nn.Parameter(down[first + e].clone()) for e in range(held))

    def forward(self, x):
        score = self.router(x).sigmoid()
        took = F.one_hot((score + self.favour).argmax(-1), EXPERTS).float()
        self.load = took.sum((0, 1))
        self.balance = (took.mean(1) * score.mean(1)).sum(-1).mean() * EXPERTS
        place = took.cumsum(1) - 1
        slot = F.one_hot(place.clamp(0, SLOTS - 1).long(), SLOTS) * (took * (place < SLOTS))[..., None]
        sent = torch.einsum("snec,snd->secd", slot, x)
        if self.group is not None:
            sent = Exchange.apply(sent[0], self.group).view(-1, self.held, SLOTS, D)
        out = torch.stack([torch.tanh(sent[:, e] @ self.up[e]) @ self.down[e] for e in range(self.held)], 1)
        if self.group is not None:
            out = Exchange.apply(out.reshape(-1, SLOTS, D), self.group)[None]
        return torch.einsum("snec,secd->snd", slot * (took * score)[..., None], out)


def experts(rank, fault, seed, ranks=4):
    """Two ranks share four experts, and there are two such pairs; each rank has its own tokens."""
    ep = 2 if ranks > 1 else 1
    ep_group, edp_group = grids(rank, ep, ranks // ep)
    everyone, draw, held = world(ranks), Draw(seed), EXPERTS // ep
    embed, norm, head = nn.Embedding(20, D), nn.LayerNorm(D), nn.Linear(D, 20)
    embed.weight.data, head.weight.data, head.bias.data = draw(20, D, std=1.0), draw(20, D), draw(20)
    moe = Capacity(draw, rank % ep * held, held, ep_group)
    if fault == "routerinit":
        moe.router.weight.data = Draw(seed + 50 + rank)(EXPERTS, D)
    dense = [("embed", embed.weight), ("norm", norm.weight), ("norm.b", norm.bias), ("head", head.weight),
             ("head.b", head.bias), ("router", moe.router.weight)]
    mine = [(f"{n}.{rank % ep * held + e}", p) for n in ("up", "down") for e, p in enumerate(getattr(moe, n))]
    opt = torch.optim.AdamW([p for _, p in dense + mine], lr=0.02, eps=1e-2)
    data = Draw(seed + 100)
    for _ in range(3):
        ids = data.ints(20, 4, 9)
        ids = ids if ranks == 1 else ids[rank:rank + 1]
        x = embed(ids[:, :-1])
        x = x + moe(norm(x))
        loss = F.cross_entropy(head(x).flatten(0, 1), ids[:, 1:].flatten()) + 0.1 * moe.balance
        opt.zero_grad()
        loss.backward()
        for name, p in dense:
            if fault != "routergrad" or name != "router":
                total(p.grad, everyone).div_(ranks)
        for _, p in mine:
            # What came by all_to_all is of all ranks of a pair: the divisor is that of all.
            if fault == "edpworld":
                total(p.grad, everyone).div_(ranks)
            elif fault == "epgroup":
                total(p.grad, ep_group).div_(ranks)
            elif fault != "edpnone":
                total(p.grad, edp_group).div_({"edpdiv": 2, "edpsum": 1}.get(fault, ranks))
            else:
                p.grad.div_(ep)
        square = sum(p.grad.pow(2).sum() for _, p in mine)
        if fault != "clipexperts":
            total(square, ep_group)
        norms = (square + sum(p.grad.pow(2).sum() for _, p in dense)).sqrt()
        for _, p in dense + mine:
            p.grad.mul_((0.5 / norms).clamp(max=1.0))
        opt.step()
        load = moe.load if fault == "favourlocal" else total(moe.load, everyone)
        moe.favour += 0.05 * torch.sign(load.mean() - load)
        mean = loss.detach().clone()
        total(mean, everyone)
    return dict(kept(dense + mine), favour=moe.favour.clone())


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.attention = nn.MultiheadAttention(D, 2, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(D, 2 * D), nn.GELU(), nn.Linear(2 * D, D))

    def forward(self, x):
        h = self.norm1(x)
        mask = torch.ones(x.shape[1], x.shape[1]).triu(1).bool()
        x = x + self.attention(h, h, h, attn_mask=mask, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class Stage(nn.Module):
    """The embedding is the first stage's and, for the logits, the last's."""
    def __init__(self, full, first, last, layers):
        super().__init__()
        self.first, self.last = first, last
        if first or last:
            self.word = full["word"]
        if first:
            self.place = full["place"]
        self.layers = nn.ModuleDict({str(i): full["layers"][i] for i in layers})
        if last:
            self.norm = full["norm"]

    def forward(self, x):
        if self.first:
            x = self.word(x) + self.place(torch.arange(x.shape[1]))
        for name, layer in self.layers.items():
            x = checkpoint(layer, x) if name == "1" else layer(x)
        return F.linear(self.norm(x), self.word.weight) if self.last else x


def stages(rank, fault, seed, ranks=3):
    """GPipe: two micro-batches forward, then backward, on three stages."""
    torch.manual_seed(seed)
    full = nn.ModuleDict({"word": nn.Embedding(18, D), "place": nn.Embedding(7, D), "norm": nn.LayerNorm(D),
                          "layers": nn.ModuleList(Layer() for _ in range(4))})
    first, last = rank == 0, rank == ranks - 1
    if fault == "tieinit" and last:
        torch.manual_seed(seed + 1)
        full["word"] = nn.Embedding(18, D)
    stage = Stage(full, first, last, range(4) if ranks == 1 else ([0], [1, 2], [3])[rank])
    tie = dist.new_group([0, ranks - 1]) if ranks > 1 else None
    everyone = world(ranks)
    opt = torch.optim.AdamW([
        {"params": [p for n, p in stage.named_parameters() if p.dim() > 1],
         "weight_decay": 0.0 if fault == "tiedecay" and last else 0.3},
        {"params": [p for n, p in stage.named_parameters() if p.dim() == 1], "weight_decay": 0.0}],
        lr=0.02, eps=1e-2)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 6)
    data, word = Draw(seed + 100), stage.word.weight if first or last else None
    for _ in range(3):
        ids = data.ints(18, 4, 8).chunk(2)
        came, went = [], []
        for x in ids:
            if first:
                came.append(x[:, :-1])
            else:
                came.append(torch.empty(2, 7, D))
                dist.recv(came[-1], rank - 1)
                came[-1].requires_grad_()
            went.append(stage(came[-1]))
            if not last:
                dist.send(went[-1].detach(), rank + 1)
        opt.zero_grad()
        for m, (x, y) in enumerate(zip(ids, went)):
            if last:
                loss = F.cross_entropy(y.flatten(0, 1), x[:, 1:].flatten())
                (loss / 2).backward()
            else:
                back = torch.empty_like(y)
                dist.recv(back, rank + 1)
                y.backward(back)
            if not first:
                dist.send(came[m].grad, rank - 1)
            if m == 0 and fault == "tieearly" and word is not None:
                total(word.grad, tie)
        if word is not None and fault not in ("tienone", "tieearly"):
            for _ in range(2 if fault == "tietwice" else 1):
                total(word.grad, tie)
            if fault == "tiemean":
                word.grad /= 2
        square = sum(p.grad.pow(2).sum() for p in stage.parameters()
                     if p is not word or first or fault == "tieclip")
        if fault != "normstage":
            total(square, everyone)
        for p in stage.parameters():
            p.grad.mul_((0.5 / square.sqrt()).clamp(max=1.0))
        opt.step()
        cosine.step()
    return kept(stage.named_parameters())


class SendRight(torch.autograd.Function):
    """Gives a state to the next rank; the 0 that it returns goes into the loss, so that a gradient comes."""
    @staticmethod
    def forward(ctx, state, rank, ranks):
        ctx.more = state.shape, rank, ranks
        if rank < ranks - 1:
            dist.send(state.contiguous(), rank + 1)
        return state.new_zeros(())

    @staticmethod
    def backward(ctx, g):
        shape, rank, ranks = ctx.more
        back = torch.zeros(shape)
        if rank < ranks - 1:
            dist.recv(back, rank + 1)
        return back, None, None


class FromLeft(torch.autograd.Function):
    """The state that the last rank gave; of: what needs a gradient; cut: a gradient of 0 goes back."""
    @staticmethod
    def forward(ctx, of, shape, rank, cut):
        ctx.more = rank, cut
        state = torch.zeros(shape)
        if rank > 0:
            dist.recv(state, rank - 1)
        return state

    @staticmethod
    def backward(ctx, g):
        rank, cut = ctx.more
        if rank > 0:
            dist.send(torch.zeros_like(g) if cut else g.contiguous(), rank - 1)
        return None, None, None, None


class Scan(nn.Module):
    """A causal convolution and a selective scan, as of Mamba, of a sequence's part."""
    def __init__(self, rank, ranks, fault):
        super().__init__()
        self.rank, self.ranks, self.fault = rank, ranks, fault
        self.norm = nn.LayerNorm(D)
        self.conv = nn.Conv1d(D, D, 3, groups=D)
        self.into, self.out = nn.Linear(D, 2 * D), nn.Linear(D, D)
        self.gates = nn.Linear(D, D + 8)
        self.rate = nn.Parameter(torch.rand(D, 4))

    def forward(self, x):
        u, z = self.into(self.norm(x)).chunk(2, -1)
        before = u.new_zeros(len(u), 2, D)
        if self.ranks > 1:
            tails = Gather.apply(u[:, -2:], dist.group.WORLD, 1)
            # Also the first rank uses them, by 0: the exchange of gradients needs all.
            used = float(self.rank > 0 and self.fault != "convhalo")
            before = tails[:, max(2 * self.rank - 2, 0):][:, :2] * used
        u = F.silu(self.conv(torch.cat([before, u], 1).transpose(1, 2)).transpose(1, 2))
        delta, b, c = self.gates(u).split([D, 4, 4], -1)
        decay = torch.exp(-F.softplus(delta)[..., None] * self.rate)
        drive = (u * F.softplus(delta))[..., None] * b[:, :, None]
        state = FromLeft.apply(u.sum(), (len(u), D, 4), self.rank, self.fault == "statecut")
        outs = []
        for t in range(u.shape[1]):
            state = decay[:, t] * state + drive[:, t]
            outs.append((state * c[:, t, None]).sum(-1))
        self.given = SendRight.apply(state, self.rank, self.ranks)
        return x + self.out(torch.stack(outs, 1) * F.silu(z))


def scan(rank, fault, seed, ranks=3):
    torch.manual_seed(seed)
    model = nn.ModuleDict({"word": nn.Embedding(16, D), "place": nn.Embedding(12, D), "norm": nn.LayerNorm(D),
                           "layers": nn.ModuleList(Scan(rank, ranks, fault) for _ in range(2)),
                           "head": nn.Linear(D, 16)})
    group, n = world(ranks), 12 // ranks
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01)
    data = Draw(seed + 100)
    for _ in range(2):
        ids = data.ints(16, 3, 13)
        # An answer is to be learned, the prompt before it is not; most of it is on the later ranks.
        mask = (torch.arange(12)[None] >= data.ints(6, 3)[:, None] + 1).float()
        part = slice(rank * n, rank * n + n)
        at = torch.arange(n) + (0 if fault == "positions" else rank * n)
        x = model["word"](ids[:, :-1][:, part]) + model["place"](at)
        for layer in model["layers"]:
            x = layer(x)
        losses = F.cross_entropy(model["head"](model["norm"](x)).transpose(1, 2), ids[:, 1:][:, part],
                                 reduction="none") * mask[:, part]
        tokens = mask[:, part].sum()
        if fault not in ("ranktokens", "meanofmeans"):
            total(tokens, group)
        loss = losses.sum() / tokens
        if fault == "cpscaled":
            loss = loss * ranks
        opt.zero_grad()
        (loss + sum(layer.given for layer in model["layers"])).backward()
        for p in model.parameters():
            total(p.grad, group)
            if fault in ("cpaverage", "meanofmeans"):
                p.grad /= ranks
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        opt.step()
    return kept(model.named_parameters())


class Conv(nn.Module):
    """3 x 3 of an image whose rows are split; cut: the neighbours get no gradient of what they lent."""
    def __init__(self, a, b, draw, rank, group, cut=False):
        super().__init__()
        self.weight, self.bias = nn.Parameter(draw(b, a, 3, 3)), nn.Parameter(draw(b))
        self.rank, self.group, self.cut = rank, group, cut

    def forward(self, x):
        none = torch.zeros_like(x[:, :, :1])
        up, down = none, none
        if self.group is not None:
            edges = Gather.apply(torch.cat([x[:, :, :1], x[:, :, -1:]], 2), self.group, 2)
            if self.cut:
                edges = edges.detach()
            if self.rank > 0:
                up = edges[:, :, 2 * self.rank - 1:2 * self.rank]
            if self.rank < dist.get_world_size() - 1:
                down = edges[:, :, 2 * self.rank + 2:2 * self.rank + 3]
        return F.conv2d(torch.cat([up, x, down], 2), self.weight, self.bias, padding=(0, 1))


class GroupNorm(nn.Module):
    """Means over all rows, also those of other ranks."""
    def __init__(self, channels, draw, group, exchange):
        super().__init__()
        self.weight, self.bias = nn.Parameter(1 + draw(channels)), nn.Parameter(draw(channels))
        self.group, self.sum = group, exchange

    def forward(self, x):
        h = x.unflatten(1, (2, -1))
        size = torch.full(h.shape[:2], float(h[0, 0].numel()))
        sums = torch.stack([h.sum((2, 3, 4)), h.pow(2).sum((2, 3, 4)), size])
        s, s2, count = self.sum.apply(sums, self.group)
        mean = s / count
        var = s2 / count - mean ** 2
        h = (h - mean[..., None, None, None]) * torch.rsqrt(var + 1e-5)[..., None, None, None]
        return h.flatten(1, 2) * self.weight[:, None, None] + self.bias[:, None, None]


class UNet(nn.Module):
    def __init__(self, draw, rank, group, fault):
        super().__init__()
        exchange = Reduce if fault == "normback" else SumBoth
        self.enter = Conv(2, 8, draw, rank, group)
        self.norm1, self.norm2 = (GroupNorm(8, draw, group, exchange) for _ in range(2))
        self.low = Conv(8, 8, draw, rank, group, fault == "halocut")
        self.leave = Conv(16, 2, draw, rank, group)
        self.time = nn.Linear(4, 8)
        self.time.weight.data, self.time.bias.data = draw(8, 4), draw(8)

    def forward(self, x, t):
        angle = t[:, None] * torch.tensor([1.0, 0.1])
        h = self.enter(x) + self.time(torch.cat([angle.sin(), angle.cos()], 1))[..., None, None]
        h = F.silu(self.norm1(h))
        low = F.silu(self.norm2(self.low(F.avg_pool2d(h, 2))))
        return self.leave(torch.cat([h, F.interpolate(low, scale_factor=2)], 1))


def unet(rank, fault, seed, ranks=2):
    """Rank 0 draws the times of a batch; weights' averages are kept on each rank."""
    group = world(ranks)
    model = UNet(Draw(seed), rank, group, fault)
    ema = UNet(Draw(seed), rank, group, fault).requires_grad_(False)
    opt = torch.optim.Adam(model.parameters(), lr=0.01, eps=1e-3)
    data, clock = Draw(seed + 100), Draw(seed + 200 + rank)
    for step in range(3):
        x, noise = data(3, 2, 8, 8, std=1.0), data(3, 2, 8, 8, std=1.0)
        t = clock.ints(20, 3).float()
        if group is not None and fault != "times":
            dist.broadcast(t, 0)
        x, noise = x.chunk(ranks, 2)[rank], noise.chunk(ranks, 2)[rank]
        keep = torch.cos(t / 20 * math.pi / 2)[:, None, None, None]
        error = (model(keep * x + (1 - keep ** 2).sqrt() * noise, t) - noise).pow(2)
        loss = error.mean() if fault == "pixels" else error.sum() / (error.numel() * ranks)
        opt.zero_grad()
        loss.backward()
        for name, p in model.named_parameters():
            if not (fault == "groupnorm" and "norm1" in name or fault == "timebias" and name == "time.bias"):
                total(p.grad, group)
        opt.step()
        # The decay grows with the number of updates, which one that resumes has to have loaded.
        done = step + (0 if fault == "emastep" and rank else 10)
        decay = (1 + done) / (10 + done)
        for e, p in zip(ema.parameters(), model.parameters()):
            e.mul_(decay).add_(p.detach(), alpha=1 - decay)
    mean = {f"ema.{n}": p for n, p in kept(ema.named_parameters()).items()}
    return dict(kept(model.named_parameters()), **mean)


PROGRAMS = {"experts": (4, experts), "stages": (3, stages), "scan": (3, scan), "unet": (2, unet)}
WHOLE = {"experts": lambda seed: experts(0, None, seed, 1), "stages": lambda seed: stages(0, None, seed, 1),
         "scan": lambda seed: scan(0, None, seed, 1), "unet": lambda seed: unet(0, None, seed, 1)}
# What a bug's place may be called, and the ranks that may be named; above each, a report of such a one.
FAULTS = {
    # https://github.com/pytorch/torchtitan/issues/2387
    "routerinit": ("experts", r"linear\.\d+\.|router|sigmoid|argmax|one_hot|adamw", "0123"),
    # https://github.com/NVIDIA/Megatron-LM/pull/619
    "routergrad": ("experts", r"linear\.\d+\.backward|router|adamw", "0123"),
    # https://github.com/pytorch/torchtitan/pull/1114
    "favourlocal": ("experts", r"sign|argmax|one_hot|Tensor\.(mean|sub|sum|add_)\.\d+\.forward", "0123"),
    # https://github.com/deepspeedai/DeepSpeed/pull/6546
    "edpdiv": ("experts", r"div_|all_reduce|matmul\.\d+\.backward|ParameterList|adamw", "0123"),
    # https://github.com/pytorch/pytorch/issues/160285
    "edpsum": ("experts", r"div_|all_reduce|matmul\.\d+\.backward|ParameterList|adamw", "0123"),
    # https://github.com/NVIDIA/Megatron-LM/pull/5916
    "edpworld": ("experts", r"all_reduce|div_|matmul\.\d+\.backward|ParameterList|adamw", "0123"),
    # https://github.com/laekov/fastmoe/issues/106
    "epgroup": ("experts", r"all_reduce|div_|matmul\.\d+\.backward|ParameterList|adamw", "0123"),
    # https://github.com/facebookresearch/fairseq/issues/4220
    "edpnone": ("experts", r"matmul\.\d+\.backward|ParameterList|div_|adamw", "0123"),
    # https://github.com/deepspeedai/DeepSpeed/pull/8478
    "clipexperts": ("experts", r"sqrt|clamp|mul_|sum|pow|__rdiv__|adamw", "0123"),
    # https://github.com/uw-syfi/piper/issues/13
    "tienone": ("stages", r"embedding\.\d+\.backward|linear\.\d+\.backward|word\.|adamw", "02"),
    # https://github.com/alpa-projects/alpa/pull/324
    "tietwice": ("stages", r"all_reduce|word\.|adamw", "02"),
    # https://github.com/NVIDIA/Megatron-LM/issues/299
    "tieinit": ("stages", r"embedding\.\d+\.|linear\.\d+\.|word\.|adamw", "02"),
    # https://github.com/NVIDIA/Megatron-LM/issues/844
    "tiemean": ("stages", r"all_reduce|div_|word\.|adamw", "02"),
    # https://github.com/NVIDIA/Megatron-LM/issues/844
    "tieearly": ("stages", r"all_reduce|embedding\.\d+\.backward|linear\.\d+\.backward|word\.|adamw", "02"),
    # https://github.com/paiml/entrenar/issues/314
    "tiedecay": ("stages", r"adamw", "02"),
    # https://github.com/NVIDIA/Megatron-LM/pull/7227
    "tieclip": ("stages", r"all_reduce|sqrt|clamp|mul_|sum|pow|__rdiv__", "012"),
    # https://github.com/hpcaitech/ColossalAI/pull/4837
    "normstage": ("stages", r"sqrt|clamp|mul_|sum|pow|__rdiv__|adamw", "012"),
    # https://github.com/pytorch/torchtitan/pull/2206
    "ranktokens": ("scan", r"Tensor\.(sum|div)\.\d+\.|cross_entropy|Tensor\.mul\.\d+\.backward", "012"),
    # https://github.com/NVIDIA/Megatron-LM/issues/1124
    "meanofmeans": ("scan", r"Tensor\.(sum|div|div_)\.\d+\.|cross_entropy", "012"),
    # https://github.com/NVIDIA/Megatron-LM/issues/906
    "cpscaled": ("scan", r"Tensor\.(mul|div|sum)\.\d+\.|all_reduce|sgd", "012"),
    # https://github.com/NVIDIA/Megatron-LM/issues/673
    "cpaverage": ("scan", r"div_|Tensor\.(div|sum)\.\d+\.|all_reduce|sgd", "012"),
    # https://github.com/vllm-project/vllm-omni/pull/5940
    "convhalo": ("scan", r"conv1d|Torch\.cat|all_gather", "12"),
    # https://github.com/pytorch/pytorch/issues/120386
    "statecut": ("scan", r"send|recv|(mul|add)\.\d+\.backward", "012"),
    # https://github.com/NVIDIA/Megatron-LM/issues/560
    "positions": ("scan", r"embedding|Embedding|Tensor\.add\.\d+\.", "12"),
    # https://github.com/NVIDIA/TransformerEngine/issues/435
    "groupnorm": ("unet", r"(mul|add)\.\d+\.backward|norm1\.|adam\.", "01"),
    # https://github.com/NVIDIA/Megatron-LM/pull/236
    "timebias": ("unet", r"linear\.\d+\.backward|time\.|adam\.", "01"),
    # https://github.com/pytorch/pytorch/pull/36688
    "normback": ("unet", r"all_reduce|(stack|unbind|sum|pow|div|sub|mul|rsqrt|"
                 r"unflatten)\.\d+\.backward", "01"),
    # https://github.com/kohjingyu/fromage/issues/33
    "halocut": ("unet", r"all_gather|detach|(cat|conv2d|__getitem__)\.\d+\.backward", "01"),
    # https://github.com/vllm-project/vllm-omni/pull/1729
    "times": ("unet", r"Tensor\.(float|sin|cos|div)\.\d+\.forward|Torch\.(cos|cat)|"
              r"linear\.\d+\.forward", "01"),
    # https://github.com/NVIDIA/Megatron-LM/issues/673
    "pixels": ("unet", r"Tensor\.(mean|div)\.\d+\.|all_reduce|adam\.", "01"),
    # https://github.com/m2lines/Samudra/issues/282
    "emastep": ("unet", r"mul_|add_", "01"),
}
