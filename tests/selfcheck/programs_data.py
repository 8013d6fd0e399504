"""Programs of programs.py that are data parallel: dlrm, a recommender with a table on each rank; distil, a
student and an average of it; speech, accumulation in bfloat16; muon, momentum that is sharded; gan, two
networks and two optimizers; lamb, weights that are sharded; replay, values learned from each rank's own
experience; vit, a vision transformer with dropout of each rank's own."""
import contextlib

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from programs_base import Draw, Exchange, Gather, SumBoth, begin, kept, total, world


class Dense(nn.Module):
    def __init__(self):
        super().__init__()
        self.bottom = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 6))
        self.top = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, x, rows):
        x = self.bottom(x)
        all_of = torch.cat([x[:, None], rows.transpose(0, 1)], 1)
        i, j = torch.triu_indices(5, 5, 1)
        return self.top(torch.cat([x, (all_of @ all_of.transpose(1, 2))[:, i, j]], 1))[:, 0]


def dlrm(rank, fault, seed, ranks=4):
    """Four tables of two entries a sample; rows are sent to whose sample they are of."""
    torch.manual_seed(seed)
    model, tables = Dense(), [nn.Parameter(torch.randn(10, 6)) for _ in range(4)]
    group = world(ranks)
    mine = tables if ranks == 1 else tables[rank:rank + 1]
    run = model
    if ranks > 1 and fault == "bottomonly":
        model.bottom, run = DDP(model.bottom), model
    elif ranks > 1:
        run = DDP(model)
    sgd = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    ada = torch.optim.Adagrad(mine, lr=0.05)
    # The schedule is of the number of batches, which differs where the last file is shorter.
    epoch = 4 if fault == "epochlength" and rank == 2 else 6
    decay = torch.optim.lr_scheduler.LambdaLR(sgd, lambda s: 1 - s / epoch)
    data = Draw(seed + 100)
    for step in range(3):
        # The rows that are looked up before the model is called hide from accrecord where a step begins.
        begin(step)
        x, at, y = data(16, 5, std=1.0), data.ints(10, 16, 4, 2), data.ints(2, 16).float()
        if ranks > 1:
            x, at, y = x.chunk(4)[rank], at.chunk(4)[rank], y.chunk(4)[rank]
        at = at.permute(1, 0, 2).contiguous()
        # All tables' entries of a rank's samples, to: all samples' entries of a rank's table.
        at = Exchange.once(at, group).view(len(mine), -1, 2)
        rows = torch.stack([F.embedding_bag(i, t, mode="sum") for i, t in zip(at, mine)])
        rows = Exchange.apply(rows.view(4, len(x), 6), group, fault != "rowsback")
        loss = F.binary_cross_entropy_with_logits(run(x, rows), y)
        sgd.zero_grad()
        ada.zero_grad()
        loss.backward()
        for t in mine:
            # What came back is of the means of all ranks.
            if fault != "tablesum":
                t.grad /= ranks
        if fault == "meantwice":
            for p in model.parameters():
                p.grad /= ranks
        sgd.step()
        ada.step()
        decay.step()
        with torch.no_grad():
            total(loss.detach().clone(), group)
    named = [(n.replace("module.", ""), p) for n, p in model.named_parameters()]
    return kept(named + [(f"table.{rank + i}", t) for i, t in enumerate(mine)])


class Student(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch, self.norm = nn.Linear(8, 12), nn.LayerNorm(12)
        self.mlp = nn.Sequential(nn.Linear(12, 24), nn.GELU(), nn.Linear(24, 12))
        self.head, self.probe = nn.Linear(12, 10), nn.Linear(12, 2)

    def forward(self, x):
        x = self.patch(x)
        x = x + self.mlp(self.norm(x))
        return self.head(x.mean(1))


def distil(rank, fault, seed, ranks=3):
    """The teacher is a mean of the student's weights; its answers' centre, of the answers of all ranks. The
    probe is not used in this phase."""
    torch.manual_seed(seed + (rank if fault == "teacherseed" else 0))
    student, teacher = Student(), Student().requires_grad_(False)
    if fault != "teacherseed":
        teacher.load_state_dict(student.state_dict())
    run = DDP(student, find_unused_parameters=True) if ranks > 1 else student
    centre = torch.zeros(10)
    opt = torch.optim.AdamW([p for n, p in student.named_parameters() if "probe" not in n], lr=0.01, eps=1e-3)
    data = Draw(seed + 100)
    for step in range(3):
        a, b = data(6, 4, 8, std=1.0), data(6, 4, 8, std=1.0)
        if ranks > 1:
            a, b = a.chunk(ranks)[rank], b.chunk(ranks)[rank]
        with torch.no_grad():
            said = teacher(b)
        wanted = ((said - centre) / 0.2).softmax(-1)
        loss = -(wanted * (run(a) / 0.5).log_softmax(-1)).sum(-1).mean()
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(student.parameters(), 0.5)
        opt.step()
        with torch.no_grad():
            heap = said.sum(0)
            if fault != "centre":
                total(heap, world(ranks))
            heap /= len(said) * (1 if fault in ("centre", "centresum") else ranks)
            centre = centre * 0.5 + heap * 0.5
            # Of an epoch's length, as a rank has it.
            keep = 0.9 + 0.1 * step / (4 if fault == "teacherpace" and rank == 1 else 40)
            for t, s in zip(teacher.parameters(), student.parameters()):
                t.mul_(keep).add_(s.detach(), alpha=1 - keep)
    return dict(kept(student.named_parameters()), centre=centre,
                **{f"teacher.{n}": p for n, p in kept(teacher.named_parameters()).items()})


class Speech(nn.Module):
    def __init__(self):
        super().__init__()
        self.pairs, self.rnn = nn.Linear(12, 12), nn.GRU(12, 12, batch_first=True)
        self.norm, self.out = nn.LayerNorm(12), nn.Linear(12, 9)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            # Not gelu: that of torch 1.13 gives NaN at times for gradients with other strides, as gru's.
            h = F.silu(self.pairs(x.unflatten(1, (8, 2)).flatten(2)))
        h = self.norm(self.rnn(h.float())[0])
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.out(h)


def speech(rank, fault, seed, ranks=2):
    """Two micro-batches of sentences of different lengths, whose frames all weigh the same."""
    torch.manual_seed(seed)
    model = Speech()
    run = DDP(model) if ranks > 1 else model
    opt = torch.optim.Adam(model.parameters(), lr=0.01, eps=1e-3)
    data = Draw(seed + 100)
    for _ in range(2):
        x, y, far = data(8, 16, 6, std=1.0), data.ints(9, 8, 8), data.ints(6, 8) + 2
        if ranks > 1:
            x, y, far = x.chunk(2)[rank], y.chunk(2)[rank], far.chunk(2)[rank]
        # One process goes through the same micro-batches, so that bfloat16 rounds alike.
        batches = list(zip(x.split(2), y.split(2), far.split(2)))
        frames = far.sum()
        if fault == "framesrank":
            frames = frames * ranks
        else:
            total(frames, world(ranks))
        opt.zero_grad()
        for m, (a, b, n) in enumerate(batches):
            later = ranks > 1 and (m < len(batches) - 1 or fault == "nosyncall")
            with run.no_sync() if later else contextlib.nullcontext():
                wrong = F.cross_entropy(run(a).float().transpose(1, 2), b, reduction="none")
                wrong = (wrong * (torch.arange(8)[None] < n[:, None])).sum()
                if fault == "microframes":
                    loss = wrong / n.sum() / len(batches)
                elif fault == "microsum":
                    loss = wrong / n.sum()
                else:
                    # DDP will divide by the ranks.
                    loss = wrong / frames * (1 if fault == "ddpdivides" else ranks)
                loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 20.0)
        opt.step()
    return kept(model.named_parameters())


def orthogonal(g):
    """Newton and Schulz."""
    x = g / (g.norm() + 1e-7)
    for _ in range(4):
        a = x @ x.T
        x = 1.5 * x - 0.5 * a @ x
    return x


def muon(rank, fault, seed, ranks=3):
    """Each matrix has an owner, which keeps its momentum, makes it orthogonal and gives all the update."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(8, 16), nn.SiLU(), nn.Linear(16, 16), nn.SiLU(), nn.Linear(16, 16),
                          nn.SiLU(), nn.Linear(16, 4))
    matrices = [p for p in model.parameters() if p.dim() == 2]
    others = torch.optim.AdamW([p for p in model.parameters() if p.dim() == 1], lr=0.01, eps=1e-3)
    momentum = [torch.zeros_like(p) for p in matrices]
    data, seen = Draw(seed + 100), 0
    for step in range(3):
        # The matrices' optimizer is none of torch's.
        begin(step)
        x, y = data(9, 8, std=1.0), data(9, 4, std=1.0)
        if ranks > 1:
            x, y = x.chunk(ranks)[rank], y.chunk(ranks)[rank]
        # Progress through the data, in samples; packing makes of it another on each rank.
        seen += len(x) * (2 if fault == "progress" and rank == 2 else 1)
        loss = F.mse_loss(model(x), y)
        model.zero_grad()
        loss.backward()
        for i, p in enumerate(model.parameters()):
            if fault != "ownlocal" or i != 2:
                total(p.grad, world(ranks)).div_(ranks)
        with torch.no_grad():
            for i, (p, m) in enumerate(zip(matrices, momentum)):
                owner = i % ranks
                update = torch.empty_like(p)
                if rank == owner or ranks == 1:
                    m.mul_(0.9).add_(p.grad)
                    update = orthogonal(p.grad + 0.9 * m) * max(1.0, p.shape[0] / p.shape[1]) ** 0.5
                if ranks > 1 and not (fault == "notgiven" and i == 3):
                    dist.broadcast(update, owner)
                elif ranks > 1 and rank != owner:
                    update.zero_()
                p.mul_(1 - 0.01 * 0.1).sub_(update, alpha=0.05 * (1 - seen * ranks / 90))
        if not (fault == "biasskip" and rank == 0 and step == 1):
            others.step()
    return kept(model.named_parameters())


class SyncNorm(nn.Module):
    """A batch norm of all ranks' samples; spread: variances are averaged."""
    def __init__(self, n, group, spread):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(n)), nn.Parameter(torch.zeros(n))
        self.group, self.spread = group, spread

    def forward(self, x):
        if self.spread:
            sums = torch.stack([x.mean(0), x.var(0, unbiased=False)])
            mean, var = SumBoth.apply(sums, self.group) / dist.get_world_size()
        else:
            sums = torch.stack([x.sum(0), x.pow(2).sum(0), torch.ones_like(x).sum(0)])
            s, s2, n = SumBoth.apply(sums, self.group)
            mean, var = s / n, s2 / n - (s / n) ** 2
        return (x - mean) * torch.rsqrt(var + 1e-5) * self.weight + self.bias


def gan(rank, fault, seed, ranks=2):
    torch.manual_seed(seed)
    group = world(ranks)
    make = nn.Sequential(nn.Linear(4, 16), SyncNorm(16, group, fault == "spread"), nn.LeakyReLU(0.2),
                         nn.Linear(16, 6))
    judge = nn.Sequential(nn.Linear(6, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
    opt_m = torch.optim.Adam(make.parameters(), lr=0.01, betas=(0.5, 0.9), eps=1e-3)
    opt_j = torch.optim.Adam(judge.parameters(), lr=0.02, betas=(0.5, 0.9), eps=1e-3)
    data = Draw(seed + 100)

    def update(net, opt, loss):
        opt.zero_grad()
        loss.backward()
        for p in net.parameters():
            total(p.grad, group).div_(ranks)
        opt.step()

    for step in range(3):
        # A step is of both optimizers.
        begin(step)
        real, z = data(8, 6, std=1.0), data(8, 4, std=1.0)
        if ranks > 1:
            real, z = real.chunk(ranks)[rank], z.chunk(ranks)[rank]
        loss = F.relu(1 - judge(real)).mean() + F.relu(1 + judge(make(z).detach())).mean()
        update(judge, opt_j, loss)
        if fault == "oncemore" and rank == 1 and step == 0:
            # It learns once more where it was not good enough, as this rank sees it.
            opt_j.step()
        judge.requires_grad_(False)
        update(make, opt_m, -judge(make(z)).mean())
        judge.requires_grad_(True)
        if fault == "fresh" and rank == 1 and step == 1:
            # What a rank that resumed did not load.
            opt_m.state.clear()
    return kept([(f"make.{n}", p) for n, p in make.named_parameters()]
                + [(f"judge.{n}", p) for n, p in judge.named_parameters()])


def lamb(rank, fault, seed, ranks=2):
    """Weights that are gathered where they are used, and LAMB by hand, whose norms are of whole layers."""
    group, draw = world(ranks), Draw(seed)
    shapes = {"up": (16, 8), "mid": (16, 16), "down": (6, 16)}
    whole = {n: draw(*s) for n, s in shapes.items()}
    w = {n: x.flatten().chunk(ranks)[rank].clone().requires_grad_() for n, x in whole.items()}
    m, v = ({n: torch.zeros_like(x) for n, x in w.items()} for _ in range(2))
    data = Draw(seed + 100)
    for step in range(3):
        # The optimizer is none of torch's.
        begin(step)
        x, y = data(8, 8, std=1.0), data(8, 6, std=1.0)
        if ranks > 1:
            x, y = x.chunk(ranks)[rank], y.chunk(ranks)[rank]
        for n, s in shapes.items():
            x = F.linear(x, Gather.apply(w[n], group, 0).view(s))
            x = x if n == "down" else torch.tanh(x)
        loss = F.mse_loss(x, y)
        for p in w.values():
            p.grad = None
        loss.backward()
        with torch.no_grad():
            for n, p in w.items():
                if fault != "gradsum":
                    p.grad /= ranks
                m[n].mul_(0.9).add_(p.grad, alpha=0.1)
                v[n].mul_(0.99).addcmul_(p.grad, p.grad, value=0.01)
                t = step + 1 + (5 if fault == "stepcount" and rank else 0)
                to = (m[n] / (1 - 0.9 ** t)) / ((v[n] / (1 - 0.99 ** t)).sqrt() + 1e-3) + 0.01 * p
                norms = torch.stack([p.pow(2).sum(), to.pow(2).sum()])
                if fault != "trust":
                    total(norms, group)
                norms = norms.sqrt()
                p.sub_(to * 0.05 * norms[0] / norms[1])
    return kept(w.items())


def replay(rank, fault, seed, ranks=3):
    """Values of actions, of each rank's own buffer; a batch whose errors are too large on one rank is
    left out on all, and the old values are those of every second step."""
    torch.manual_seed(seed)
    net, old = (nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 4)) for _ in range(2))
    old.load_state_dict(net.state_dict())
    group = world(ranks)
    opt = torch.optim.RMSprop(net.parameters(), lr=0.01, eps=1e-2)
    data, updates = Draw(seed + 100), 0
    for step in range(4):
        # A step that is left out has no optimizer's.
        begin(step)
        s, then, act = data(12, 6, std=1.0), data(12, 6, std=1.0), data.ints(4, 12)
        # The reward of one sample of the last rank's breaks a step.
        reward = data(12, std=1.0)
        reward[11] += 1000.0 * (step == 2)
        prior = data(12).abs() + 0.1
        if ranks > 1:
            s, then, act, reward, prior = (x.chunk(ranks)[rank] for x in (s, then, act, reward, prior))
        weight = prior ** -0.5
        top = weight.max()
        if group is not None and fault != "weightmax":
            total(top, group, op=dist.ReduceOp.MAX)
        with torch.no_grad():
            goal = reward + 0.9 * old(then).max(-1)[0]
        error = net(s).gather(1, act[:, None])[:, 0] - goal
        loss = (weight / top * F.huber_loss(error, torch.zeros_like(error), reduction="none")).mean()
        opt.zero_grad()
        loss.backward()
        for p in net.parameters():
            total(p.grad, group).div_(ranks)
        bad = (error.detach().abs().max() > 100).float()
        if group is not None and fault != "spike":
            total(bad, group, op=dist.ReduceOp.MAX)
        if not bad:
            opt.step()
        updates += 1
        if (updates + (fault == "oldlate" and rank == 0)) % 2 == 0:
            old.load_state_dict(net.state_dict())
    past = {f"old.{n}": p for n, p in kept(old.named_parameters()).items()}
    return dict(kept(net.named_parameters()), **past)


class Vit(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch, self.drop = nn.Conv2d(1, 12, 4, stride=4), nn.Dropout(0.2)
        self.cls, self.place = nn.Parameter(torch.zeros(1, 1, 12)), nn.Parameter(torch.randn(1, 5, 12) * 0.1)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(12, 2, 24, 0.1, "gelu", batch_first=True,
                                                               norm_first=True) for _ in range(2))
        self.head = nn.Linear(12, 5)
        self.old_head = nn.Linear(12, 3).requires_grad_(False)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = self.drop(torch.cat([self.cls.expand(len(x), -1, -1), x], 1) + self.place)
        for layer in self.layers:
            x = layer(x)
        return self.head(x[:, 0])


def vit(rank, fault, seed, ranks=2):
    """Label smoothing, clipping, a static graph; the last batch of rank 1 is a smaller one."""
    torch.manual_seed(seed)
    model = Vit()
    run = DDP(model, static_graph=True)
    torch.manual_seed(seed + 1 + rank)
    decay = [p for p in model.parameters() if p.dim() > 1 and p.requires_grad]
    plain = [p for p in model.parameters() if p.dim() <= 1 and p.requires_grad]
    opt = torch.optim.AdamW([{"params": decay, "weight_decay": 0.05}, {"params": plain, "weight_decay": 0.0}],
                            lr=0.01, eps=1e-3)
    data = Draw(seed + 100 + rank)
    for step in range(3):
        n = 2 if rank and step == 2 else 4
        x, y = data(n, 1, 8, 8, std=1.0), data.ints(5, n)
        out = model(x) if fault == "unwrapped" else run(x)
        loss = F.cross_entropy(out, y, label_smoothing=0.1)
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.05 if fault == "cliprank" and rank else 0.3)
        opt.step()
        said = [None] * ranks
        dist.all_gather_object(said, {"rank": rank, "loss": loss.item()})
        if step == 1:
            run.eval()
            with torch.no_grad():
                right = (run(x).argmax(-1) == y).float().sum()
            dist.all_reduce(right)
            run.train()
    return kept(model.named_parameters())


PROGRAMS = {"dlrm": (4, dlrm), "distil": (3, distil), "speech": (2, speech), "muon": (3, muon),
            "gan": (2, gan), "lamb": (2, lamb), "replay": (3, replay), "vit": (2, vit)}
WHOLE = {"dlrm": lambda seed: dlrm(0, None, seed, 1), "distil": lambda seed: distil(0, None, seed, 1),
         "speech": lambda seed: speech(0, None, seed, 1), "muon": lambda seed: muon(0, None, seed, 1),
         "gan": lambda seed: gan(0, None, seed, 1), "lamb": lambda seed: lamb(0, None, seed, 1),
         "replay": lambda seed: replay(0, None, seed, 1), "vit": lambda seed: {}}
# What a bug's place may be called, and the ranks that may be named; above each, a report of such a one.
FAULTS = {
    # https://github.com/k2-fsa/icefall/issues/226
    "bottomonly": ("dlrm", r"linear\.\d+\.backward|top\.|parameters_grad|sgd", "0123"),
    # https://github.com/NVIDIA-NeMo/Automodel/pull/1260
    "rowsback": ("dlrm", r"all_to_all|(embedding_bag|stack|view|transpose|cat)\.\d+\.backward|"
                 r"adagrad", "0123"),
    # https://github.com/meta-pytorch/torchrec/issues/2251
    "tablesum": ("dlrm", r"all_to_all|(embedding_bag|stack|view|transpose)\.\d+\.backward|adagrad", "0123"),
    # https://github.com/meta-pytorch/torchrec/issues/2251
    "meantwice": ("dlrm", r"div_|sgd", "0123"),
    # https://github.com/karpathy/nanochat/pull/857
    "epochlength": ("dlrm", r"sgd", "2"),
    # https://github.com/m2lines/Samudra/pull/326
    "teacherseed": ("distil", r"linear\.\d+\.forward|layer_norm\.\d+\.forward|mul_|add_", "012"),
    # https://github.com/lightly-ai/lightly/pull/2062
    "centre": ("distil", r"Tensor\.(sum|div_|mul|add|sub)\.\d+\.forward", "012"),
    # https://github.com/facebookresearch/dinov2/issues/546
    "centresum": ("distil", r"all_reduce|Tensor\.(sum|div_|mul|add|sub)\.\d+\.forward", "012"),
    # https://github.com/lightly-ai/lightly-train/pull/892
    "teacherpace": ("distil", r"mul_|add_", "1"),
    # https://github.com/modelscope/ms-swift/pull/10165
    "framesrank": ("speech", r"Tensor\.(sum|mul|div)\.\d+\.", "01"),
    # https://github.com/huggingface/transformers/pull/34191
    "microframes": ("speech", r"Tensor\.(sum|mul|div)\.\d+\.|cross_entropy", "01"),
    # https://github.com/verl-project/verl/pull/3332
    "microsum": ("speech", r"Tensor\.(sum|div)\.\d+\.|cross_entropy|adam\.", "01"),
    # https://github.com/ruimalheiro/gradient-garden/pull/113
    "ddpdivides": ("speech", r"Tensor\.(mul|div)\.\d+\.|adam\.", "01"),
    # https://github.com/modelscope/FunASR/pull/3472
    "nosyncall": ("speech", r"(gru|linear|layer_norm)\.\d+\.backward|parameters_grad|Torch\.norm|"
                  r"adam\.", "01"),
    # https://github.com/karpathy/nanochat/pull/857
    "progress": ("muon", r"sub_|Tensor\.mul\.\d+\.forward", "2"),
    # https://github.com/PaddlePaddle/Paddle/pull/78122
    "ownlocal": ("muon", r"linear\.\d+\.backward|parameters_grad|add_|Tensor\.(norm|div|add)\.", "012"),
    # https://github.com/NVIDIA/Megatron-LM/pull/6920
    "notgiven": ("muon", r"sub_|zero_|broadcast|Tensor\.(sub|mul)\.\d+\.forward", "012"),
    # https://github.com/dylanyunlon/Neuron_SP/issues/2
    "biasskip": ("muon", r"adamw", "0"),
    # https://github.com/PaddlePaddle/Paddle/issues/32464
    "spread": ("gan", r"Tensor\.(mean|var|div)\.\d+\.|Torch\.stack|all_reduce", "01"),
    # https://github.com/facebookresearch/optimizers/pull/149
    "oncemore": ("gan", r"adam\.", "01"),
    # https://github.com/vllm-project/speculators/pull/926
    "fresh": ("gan", r"adam\.", "01"),
    # https://github.com/EleutherAI/bergson/pull/334
    "gradsum": ("lamb", r"all_reduce|chunk|(view|linear)\.\d+\.backward|mul_|add_|addcmul_", "01"),
    # https://github.com/facebookresearch/optimizers/pull/149
    "stepcount": ("lamb", r"Tensor\.div\.\d+\.forward|sub_", "01"),
    # https://github.com/deepspeedai/DeepSpeed/issues/490
    "trust": ("lamb", r"stack|sqrt|sub_|__getitem__|Tensor\.(sum|pow)\.", "01"),
    # https://github.com/pytorch/torchtitan/pull/2206
    "weightmax": ("replay", r"Tensor\.(max|div|mul)\.\d+\.|huber_loss", "012"),
    # https://github.com/ecmwf/WeatherGenerator/issues/2724
    "spike": ("replay", r"Tensor\.(gt|float|max|__abs__|abs)\.\d+\.forward|rmsprop", "012"),
    # https://github.com/ray-project/ray/pull/46216
    "oldlate": ("replay", r"copy_|Tensor\.max\.\d+\.forward|linear\.\d+\.forward", "0"),
    # https://github.com/rosinality/swapping-autoencoder-pytorch/issues/22
    "unwrapped": ("vit", r"(linear|layer_norm|conv2d|multi_head_attention_forward|cat|add|"
                  r"expand)\.\d+\.backward|parameters_grad|Torch\.norm|adamw", "01"),
    # https://github.com/ecmwf/WeatherGenerator/issues/2724
    "cliprank": ("vit", r"clamp|mul_|__rdiv__|adamw", "01"),
}
