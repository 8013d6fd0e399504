"""Programs whose ranks share the data: DistributedDataParallel in several ways, gradients averaged by hand,
ZeRO, contrastive losses, batch norms; and what is reported to go wrong in such.

Each train(rank, fault, seed) is a user's program on one rank and gives its weights and last gradients; each
whole_NAME(seed) gives what they should be, by one process that has the batches of all ranks.
"""
import contextlib
import copy

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.checkpoint import checkpoint

D = 16
SIZES = (3, 5, 2, 4)   # batches that differ by rank, where a program wants that


def draw(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def choose(seed, n, *shape):
    return torch.randint(n, shape, generator=torch.Generator().manual_seed(seed))


def data(seed, step, rank, n=4, d=D, out=4):
    """A batch as a DistributedSampler would give it: another one on each rank and step."""
    s = 1000 * seed + 100 * step + 10 * rank
    return draw(s, n, d), draw(s + 1, n, out)


def state(model, **more):
    """What a program is checked by; nothing is copied, which would be recorded."""
    out = {n: p.data for n, p in model.named_parameters()}
    out.update({f"grad.{n}": p.grad for n, p in model.named_parameters() if p.grad is not None})
    return {**out, **more}


class Mlp(nn.Module):
    def __init__(self, d=D, out=4):
        super().__init__()
        self.fc1, self.norm, self.fc2 = nn.Linear(d, 2 * d), nn.LayerNorm(2 * d), nn.Linear(2 * d, out)

    def forward(self, x):
        return self.fc2(F.gelu(self.norm(self.fc1(x))))


def log(loss):
    """The mean loss of all ranks, for the eye only."""
    mean = loss.detach().clone()
    dist.all_reduce(mean)
    return (mean / dist.get_world_size()).item()


# --- ddp: momentum from a checkpoint, clipping, a schedule, losses that are logged --------------------------

def momentum(seed, p):
    return 0.1 * draw(seed + p.numel(), *p.shape)


def sgd(model, seed, resume=True, epoch=1):
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01)
    if resume:
        for p in model.parameters():
            opt.state[p]["momentum_buffer"] = momentum(seed, p)
    sched = torch.optim.lr_scheduler.StepLR(opt, 1, 0.7)
    opt.param_groups[0]["lr"] = 0.1 * 0.7 ** epoch
    return opt, sched


def train_ddp(rank, fault, seed):
    torch.manual_seed(seed)
    model = Mlp()
    ddp = DDP(model)
    other = rank == 1
    opt, sched = sgd(model, seed, not (fault == "resume" and other), 3 if fault == "lr" and other else 1)
    net = model if fault == "notwrapped" else ddp
    for s in range(3):
        x, y = data(seed, s, rank)
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        opt.step()
        sched.step()
        log(loss)
        dist.all_gather_object([None] * dist.get_world_size(), {"rank": rank, "loss": loss.item()})
    return state(model)


def whole_ddp(seed):
    torch.manual_seed(seed)
    model = Mlp()
    opt, sched = sgd(model, seed)
    for s in range(3):
        opt.zero_grad()
        x, y = map(torch.cat, zip(*(data(seed, s, r) for r in range(2))))
        F.mse_loss(model(x), y).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        opt.step()
        sched.step()
    return state(model)


# --- accum: no_sync, weight decay groups, checkpointing, dropout whose masks differ by rank -----------------

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp, self.mlp = nn.Linear(D, D), Mlp(out=D)
        self.head = nn.Linear(D, 4)

    def forward(self, x):
        h = F.dropout(self.inp(x), 0.2, self.training)
        return self.head(h + checkpoint(self.mlp, h, use_reentrant=False))


def adamw(model, lr=0.02):
    groups = [{"params": [p for p in model.parameters() if p.ndim > 1], "weight_decay": 0.1},
              {"params": [p for p in model.parameters() if p.ndim < 2], "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=lr)


def train_accum(rank, fault, seed):
    torch.manual_seed(seed)
    model = Block()
    ddp, opt = DDP(model), adamw(model)
    torch.manual_seed(100 * seed + rank)
    for s in range(2):
        opt.zero_grad(set_to_none=True)
        for m in range(3):
            x, y = data(seed, 3 * s + m, rank, 2)
            wait = m % 3 != 0 if fault == "nosync" else m < 2
            with ddp.no_sync() if wait else contextlib.nullcontext():
                loss = F.smooth_l1_loss(ddp(x), y)
                (loss if fault == "accumonce" and rank == 1 else loss / 3).backward()
        opt.step()
    return state(model)


def whole_accum(seed):
    torch.manual_seed(seed)
    model = Block()
    opt = adamw(model)
    masks = []
    for r in range(2):
        torch.manual_seed(100 * seed + r)
        masks.append(torch.get_rng_state())
    for s in range(2):
        opt.zero_grad()
        for r in range(2):
            torch.set_rng_state(masks[r])
            for m in range(3):
                x, y = data(seed, 3 * s + m, r, 2)
                (F.smooth_l1_loss(model(x), y) / 6).backward()
            masks[r] = torch.get_rng_state()
        opt.step()
    return state(model)


# --- tokens: a loss per token of the whole batch, where ranks have different numbers of them ----------------

class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.mlp, self.head = nn.Embedding(20, D), Mlp(out=D), nn.Linear(D, 20, bias=False)

    def forward(self, t):
        return self.head(self.mlp(self.emb(t)))


def text(seed, step, rank):
    t = choose(1000 * seed + 10 * step + rank, 20, SIZES[rank], 7)
    target = t.roll(-1, 1)
    target[:, 6 - rank:] = -100
    return t, target


def train_tokens(rank, fault, seed):
    torch.manual_seed(seed)
    model = Words()
    ddp, opt = DDP(model), adamw(model)
    for s in range(2):
        t, target = text(seed, s, rank)
        opt.zero_grad()
        total = F.cross_entropy(ddp(t).flatten(0, 1), target.flatten(), ignore_index=-100, reduction="sum")
        count = (target != -100).sum().float()
        if fault != "localmean":
            dist.all_reduce(count)
            if fault != "noworld":
                total = total * dist.get_world_size()   # DDP divides by it
        loss = total / count
        loss.backward()
        opt.step()
        log(loss)
    return state(model)


def whole_tokens(seed):
    torch.manual_seed(seed)
    model = Words()
    opt = adamw(model)
    for s in range(2):
        opt.zero_grad()
        t, target = map(torch.cat, zip(*(text(seed, s, r) for r in range(3))))
        F.cross_entropy(model(t).flatten(0, 1), target.flatten()).backward()
        opt.step()
    return state(model)


# --- byhand: weights from rank 0, gradients averaged one by one, an average of the weights that is kept -----

def train_byhand(rank, fault, seed):
    torch.manual_seed(seed + 17 * rank)   # only rank 0 reads the checkpoint
    model = nn.Sequential(nn.Linear(D, D), nn.Tanh(), nn.Linear(D, 4))
    dist.barrier()
    for n, p in model.named_parameters():
        if not (fault == "bcast" and n.startswith("2.")):
            dist.broadcast(p.data, 0)
    ema = copy.deepcopy(model).requires_grad_(False)
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    for s in range(3):
        x, y = data(seed, s, rank)
        opt.zero_grad()
        F.mse_loss(model(x), y).backward()
        for p in model.parameters():
            if fault == "biasmissed" and p.ndim == 1:
                continue
            dist.all_reduce(p.grad)
            p.grad.div_(2 if fault == "divisor" else dist.get_world_size())
        opt.step()
        with torch.no_grad():
            for e, p in zip(ema.parameters(), model.parameters()):
                e.mul_(0.9).add_(p, alpha=0.1)
    return state(model, **{f"ema.{n}": p.data for n, p in ema.named_parameters()})


def whole_byhand(seed):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(D, D), nn.Tanh(), nn.Linear(D, 4))
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    for s in range(3):
        opt.zero_grad()
        x, y = map(torch.cat, zip(*(data(seed, s, r) for r in range(3))))
        F.mse_loss(model(x), y).backward()
        opt.step()
    return state(model)


# --- zero: ZeroRedundancyOptimizer, a frozen layer, a branch that is not always used ------------------------

class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.mlp = nn.Linear(D, D), Mlp(out=D)
        self.aux, self.head = nn.Linear(D, D), nn.Linear(D, 4)
        self.stem.requires_grad_(False)

    def forward(self, x, aux):
        h = self.mlp(F.relu(self.stem(x)))
        return self.head(h + self.aux(h) if aux else h)


def train_zero(rank, fault, seed):
    torch.manual_seed(seed)
    model = Branches()
    ddp = DDP(model, find_unused_parameters=True)
    trained = [p for p in model.parameters() if p.requires_grad]
    opt = ZeroRedundancyOptimizer(trained, torch.optim.AdamW, lr=0.02)
    for s in range(3):
        x, y = data(seed, s, rank)
        opt.zero_grad()
        F.mse_loss(ddp(x, s == 1 and rank == 0), y).backward()
        opt.step()
        for g in opt.param_groups:   # a schedule by hand
            g["lr"] = 0.02 * 0.5 ** (s + 1) if not (fault == "zerolr" and rank == 1) else 0.02
    return state(model)


def whole_zero(seed):
    torch.manual_seed(seed)
    model = Branches()
    opt = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.02)
    for s in range(3):
        opt.zero_grad()
        for r in range(2):
            x, y = data(seed, s, r)
            (F.mse_loss(model(x, s == 1 and r == 0), y) / 2).backward()
        opt.step()
        opt.param_groups[0]["lr"] = 0.02 * 0.5 ** (s + 1)
    return state(model)


# --- towers: pictures and texts of all ranks are each other's negatives -------------------------------------

class Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        out = [torch.empty_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(out, x)
        return torch.cat(out)

    @staticmethod
    def backward(ctx, g):
        g = g.contiguous().clone()
        dist.all_reduce(g)
        return g.chunk(dist.get_world_size())[dist.get_rank()]


def gathered(x, fault):
    if fault == "nograd":
        out = [torch.empty_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(out, x.detach())
        out[dist.get_rank()] = x
        return torch.cat(out)
    return Gather.apply(x)


class Towers(nn.Module):
    def __init__(self):
        super().__init__()
        self.image, self.text = Mlp(out=8), Mlp(out=8)
        self.scale = nn.Parameter(torch.tensor(1.5))

    def forward(self, x, t):
        return F.normalize(self.image(x), dim=-1), F.normalize(self.text(t), dim=-1), self.scale.exp()


def pairs(seed, step, rank):
    x = draw(1000 * seed + 10 * step + rank, 4, D)
    return x, x + 0.5 * draw(1000 * seed + 10 * step + rank + 500, 4, D)


def train_towers(rank, fault, seed):
    torch.manual_seed(seed)
    model = Towers()
    outside = model.scale
    if fault == "scaleout":   # a parameter beside the wrapped module
        model.scale = None
        model.forward = lambda *xs: (
            *(F.normalize(f(x), dim=-1) for f, x in zip((model.image, model.text), xs)), None)
    ddp = DDP(model)
    opt = torch.optim.AdamW([*model.image.parameters(), *model.text.parameters(), outside], lr=0.02)
    for s in range(2):
        x, t = pairs(seed, s, rank)
        opt.zero_grad()
        a, b, scale = ddp(x, t)
        scale = outside.exp() if scale is None else scale
        labels = torch.arange(4) + (0 if fault == "labels" else 4 * rank)
        loss = (F.cross_entropy(scale * a @ gathered(b, fault).t(), labels) +
                F.cross_entropy(scale * b @ gathered(a, fault).t(), labels)) / 2
        loss.backward()
        opt.step()
    model.scale = outside
    return state(model)


def whole_towers(seed):
    torch.manual_seed(seed)
    model = Towers()
    opt = torch.optim.AdamW([*model.image.parameters(), *model.text.parameters(), model.scale], lr=0.02)
    for s in range(2):
        opt.zero_grad()
        a, b, scale = model(*map(torch.cat, zip(*(pairs(seed, s, r) for r in range(2)))))
        logits, labels = scale * a @ b.t(), torch.arange(8)
        ((F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2).backward()
        opt.step()
    return state(model)


# --- syncbn: a batch norm over all ranks by hand, batches of different sizes --------------------------------

class SyncNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, b, fault):
        dims, ctx.fault = (0, 2, 3), fault
        n = x.numel() // x.shape[1]
        if fault == "bncount":   # the mean of the ranks' means, as if their batches were alike
            sums = torch.stack([x.mean(dims), x.square().mean(dims)])
            dist.all_reduce(sums)
            mean, square = sums / dist.get_world_size()
            count = n * dist.get_world_size()
        else:
            sums = torch.cat([x.sum(dims), x.square().sum(dims), torch.tensor([float(n)])])
            dist.all_reduce(sums)
            count = sums[-1].item()
            mean, square = (sums[:-1] / count).view(2, -1)
        inv = torch.rsqrt(square - mean.square() + 1e-5)
        hat = (x - mean[:, None, None]) * inv[:, None, None]
        ctx.save_for_backward(hat, w, inv)
        ctx.count = n * dist.get_world_size() if fault == "bnback" else count
        return hat * w[:, None, None] + b[:, None, None]

    @staticmethod
    def backward(ctx, g):
        hat, w, inv = ctx.saved_tensors
        gb, gw = g.sum((0, 2, 3)), (g * hat).sum((0, 2, 3))
        sums = torch.stack([gb, gw])
        dist.all_reduce(sums)
        mb, mw = sums / ctx.count
        gx = (g - mb[:, None, None] - hat * mw[:, None, None]) * (w * inv)[:, None, None]
        return gx, gw, gb, None


class Pictures(nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.conv, self.bn, self.norm = nn.Conv2d(2, 6, 3, padding=1), nn.BatchNorm2d(6), norm
        self.conv2, self.head = nn.Conv2d(6, 4, 3), nn.Linear(4, 3)

    def forward(self, x):
        h = F.relu(self.norm(self.bn, self.conv(x)))
        return self.head(self.conv2(h).mean((2, 3)))


def pictures(seed, step, rank, n):
    s = 1000 * seed + 10 * step + rank
    return (1 + rank) * draw(s, n, 2, 6, 6) + rank, choose(s, 3, n)


def train_syncbn(rank, fault, seed):
    torch.manual_seed(seed)
    model = Pictures(lambda bn, x: SyncNorm.apply(x, bn.weight, bn.bias, fault))
    ddp, opt = DDP(model), torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for s in range(2):
        x, y = pictures(seed, s, rank, SIZES[rank])
        opt.zero_grad()
        loss = F.cross_entropy(ddp(x), y, reduction="sum") * 2 / sum(SIZES[:2])
        loss.backward()
        opt.step()
        log(loss)
    return state(model)


def whole_syncbn(seed):
    torch.manual_seed(seed)
    model = Pictures(lambda bn, x: bn(x))
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for s in range(2):
        opt.zero_grad()
        x, y = map(torch.cat, zip(*(pictures(seed, s, r, SIZES[r]) for r in range(2))))
        F.cross_entropy(model(x), y).backward()
        opt.step()
    return state(model)


# --- localbn: each rank's own statistics, bfloat16, an evaluation on rank 0 alone ---------------------------

def train_localbn(rank, fault, seed):
    torch.manual_seed(seed)
    model = Pictures(lambda bn, x: bn(x))
    ddp = DDP(model, broadcast_buffers=False, static_graph=True)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for s in range(3):
        x, y = pictures(seed, s, rank, 4)
        opt.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = ddp(x)
        F.cross_entropy(out.float(), y).backward()
        opt.step()
        if rank == 0:
            model.eval()
            with torch.no_grad():
                (model(x).argmax(-1) == y).float().mean()
            if fault != "evalmode":
                model.train()
        dist.barrier()
    return state(model, mean=model.bn.running_mean)


def whole_localbn(seed):
    torch.manual_seed(seed)
    model = Pictures(lambda bn, x: bn(x))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for s in range(3):
        grads = []
        for r in range(2):
            opt.zero_grad()
            x, y = pictures(seed, s, r, 4)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                out = model(x)
            F.cross_entropy(out.float(), y).backward()
            grads.append([p.grad.clone() for p in model.parameters()])
        for p, a, b in zip(model.parameters(), *grads):
            p.grad = a / 2 + b / 2
        opt.step()
    return state(model)


# --- hook: gradients that travel in half precision ----------------------------------------------------------

def train_hook(rank, fault, seed):
    torch.manual_seed(seed)
    model = Mlp()
    ddp, opt = DDP(model), torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def compress(_, bucket):
        half = bucket.buffer().to(torch.float16)
        if fault != "hookdiv":
            half.div_(dist.get_world_size())
        return dist.all_reduce(half, async_op=True).get_future().then(
            lambda f: bucket.buffer().copy_(f.value()[0]))

    ddp.register_comm_hook(None, compress)
    for s in range(3):
        x, y = data(seed, s, rank)
        opt.zero_grad()
        F.mse_loss(ddp(x), y).backward()
        opt.step()
    return state(model)


def whole_hook(seed):
    torch.manual_seed(seed)
    model = Mlp()
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for s in range(3):
        grads = []
        for r in range(2):
            opt.zero_grad()
            x, y = data(seed, s, r)
            F.mse_loss(model(x), y).backward()
            grads.append([p.grad.half() / 2 for p in model.parameters()])
        for p, a, b in zip(model.parameters(), *grads):
            p.grad = (a + b).float()
        opt.step()
    return state(model)


PROGRAMS = {"ddp": (2, train_ddp), "accum": (2, train_accum), "tokens": (3, train_tokens),
            "byhand": (3, train_byhand), "zero": (2, train_zero), "towers": (2, train_towers),
            "syncbn": (2, train_syncbn), "localbn": (2, train_localbn), "hook": (2, train_hook)}
WHOLE = {n: globals()[f"whole_{n}"] for n in PROGRAMS}
TOWARDS = r"linear\.\d+\.backward|layer_norm\.\d+\.backward|parameters_grad|"

FAULTS = {
    # A rank's optimizer keeps another learning rate: https://github.com/pytorch/torchtitan/pull/4598
    "lr": ("ddp", r"sgd", "01"),
    # Optimizer state that only rank 0 has restored: https://github.com/pytorch/tutorials/pull/2433
    "resume": ("ddp", r"sgd", "01"),
    # The module within DDP is called: https://github.com/NCAR/miles-credit/pull/153
    "notwrapped": ("ddp", TOWARDS + r"Torch\.norm|sgd", "01"),
    # The first micro-batch is the one that synchronizes: https://github.com/modelscope/FunASR/pull/3472
    "nosync": ("accum", TOWARDS + r"all_reduce|adamw", "01"),
    # A micro-batch's loss is not divided before backward: https://github.com/verl-project/verl/pull/3332
    "accumonce": ("accum", r"smooth_l1_loss|div", "01"),
    # Each rank's mean over its own tokens: https://github.com/huggingface/transformers/issues/34242
    "localmean": ("tokens", r"cross_entropy|div|sum|float", "012"),
    # The global count without DDP's divisor: https://github.com/huggingface/transformers/pull/34373
    "noworld": ("tokens", r"cross_entropy|div|all_reduce|adamw", "012"),
    # Only rank 0 has a part of the checkpoint: https://github.com/vllm-project/speculators/pull/926
    "bcast": ("byhand", r"linear\.1\.(for|back)ward|broadcast|adam", "012"),
    # A kind of parameters that the reduction skips: https://github.com/ooples/AiDotNet/pull/1877
    "biasmissed": ("byhand", r"linear\.\d+\.backward|\.bias|adam\.", "012"),
    # A divisor that is not the group's size: https://github.com/meta-pytorch/torchtune/issues/2420
    "divisor": ("byhand", r"all_reduce|div_|adam", "012"),
    # One shard of an optimizer has another rate: https://github.com/pytorch/torchtitan/pull/4598
    "zerolr": ("zero", r"adamw", "01"),
    # Negatives of other ranks without a gradient: https://github.com/mlfoundations/open_clip/issues/616
    "nograd": ("towers", r"all_gather|cat|matmul|\.t\.", "01"),
    # Labels that do not know of the ranks: https://github.com/galilai-group/stable-pretraining/pull/409
    "labels": ("towers", r"cross_entropy|Tensor\.add\.0\.forward", "1"),
    # A parameter of the loss that DDP does not wrap:
    # https://github.com/KevinMusgrave/pytorch-metric-learning/issues/710
    "scaleout": ("towers", r"exp\.\d+\.backward|parameters_grad|adamw", "01"),
    # Sums in backward by a count of equal batches: https://github.com/pytorch/pytorch/pull/36382
    "bnback": ("syncbn", r"all_reduce|div|sub|conv2d\.0\.backward|\.conv\.", "01"),
    # Statistics as if all batches were as large: https://github.com/pytorch/pytorch/issues/22192
    "bncount": ("syncbn", r"all_reduce|div|mean|stack", "01"),
    # After its evaluation rank 0 stays in it: https://github.com/pytorch/tutorials/issues/1624
    "evalmode": ("localbn", r"batch_norm", "01"),
    # A compression hook that sums: https://github.com/pytorch/pytorch/pull/42400
    "hookdiv": ("hook", r"all_reduce|div|to\.\d+|sgd", "01"),
}
