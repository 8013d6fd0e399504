"""Programs whose ranks each have data of their own, and what goes wrong in such: replicas by hand, counted words,
normalization over ranks, pairs, averages of weights, few numbers of a gradient, sharded optimizers.

Each train(rank, fault, seed, n) is a user's program; n = 1 is one process that has all. `# in NAME` marks the lines at
which a fault enters what is recorded.
"""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

N = 2


def rand(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def ints(seed, high, *shape):
    return torch.randint(high, shape, generator=torch.Generator().manual_seed(seed))


def part(x, rank, n):
    return x.chunk(n)[rank]


def state(model):
    out = {k: p.detach().clone() for k, p in model.named_parameters()}
    return out | {f"grad.{k}": p.grad.clone() for k, p in model.named_parameters() if p.grad is not None}


# --- tabular: a table's rows, gradients averaged by hand, one norm clips them; a slow copy judges ---------------------

class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Linear(10, 24), nn.LayerNorm(24)
        self.second, self.last = nn.Linear(24, 24), nn.Linear(24, 3)
        self.drop = nn.Dropout(0.0)

    def forward(self, x):
        h = self.drop(F.gelu(self.norm(self.first(x))))
        return self.last(h + F.silu(self.second(h)))


def train_tabular(rank, fault, seed, n=N):
    torch.manual_seed(seed)
    net = Table()
    if fault == "nobcast" and rank == 1:
        nn.init.normal_(net.second.weight, std=0.2)
    slow = [p.detach().clone() for p in net.parameters()]
    opt = torch.optim.Adam(net.parameters(), lr=0.02 if fault == "ownlr" and rank else 0.01)
    for step in range(3):
        x, y = rand(seed + step, 16, 10), ints(seed + step, 3, 16)
        where = 0 if fault == "samedata" else rank
        x, y = part(x, where, n), part(y, where, n)
        net.drop.p = 0.4 if fault == "evalmode" and rank else 0.0
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        if fault == "clipbefore":
            torch.nn.utils.clip_grad_norm_(net.parameters(), 0.2)   # in clipbefore
        for p in net.parameters():
            if n == 1 or fault == "unjoined" and p is net.last.weight:
                continue
            dist.all_reduce(p.grad)   # in twice plainsum
            if fault == "twice" and p is net.second.weight:
                dist.all_reduce(p.grad)   # in twice
            if fault == "plainsum" or fault == "biassum" and p.dim() == 1:
                continue
            p.grad /= n + 1 if fault == "onemore" else n   # in onemore biassum
        norm = torch.stack([p.grad.norm() for p in net.parameters()]).norm()   # in clipown
        if fault == "clipown":
            norm = norm * (1 + rank)   # in clipown
        for p in net.parameters():
            p.grad.mul_(torch.clamp(0.2 / norm, max=1.0))   # in clipown
        if fault == "resumed" and rank and step == 1:
            opt.state.clear()
        if fault == "nograds":
            opt.zero_grad(set_to_none=True)
        if not (fault == "skipped" and rank and step == 1):
            opt.step()
        with torch.no_grad():
            for s, p in zip(slow, net.parameters()):
                s.lerp_(p, 0.3 if fault == "ownrate" and rank else 0.1)   # in ownrate
            F.linear(x, slow[0], slow[1])   # in ownrate
    return state(net)


# --- words: the loss of a step is over the words of all ranks; two parts of a batch, one after the other -------------

class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.mix = nn.Embedding(21, 16), nn.GRU(16, 16, batch_first=True)
        self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, 21)
        self.tags = nn.Linear(16, 4)

    def forward(self, t):
        h = self.embed(t)
        h = h + torch.tanh(self.norm(h.cumsum(1)))
        return self.head(h), self.tags(h)


def words(seed, micro):
    t, y = ints(seed + 31 * micro, 21, 8, 7), ints(seed + 31 * micro + 7, 21, 8, 7)
    keep = torch.arange(7)[None] < torch.tensor([7, 2, 5, 3, 6, 4, 1, 2])[:, None]
    return t, torch.where(keep, y, torch.full_like(y, -100)), ints(seed + 31 * micro + 9, 4, 8, 7)


def train_words(rank, fault, seed, n=N):
    torch.manual_seed(seed)
    net = Words()
    net.mix = None
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for step in range(2):
        batch = [[part(x, rank, n) for x in words(seed + 100 * step, m)] for m in range(2)]
        count = sum((y != -100).sum() for _, y, _ in batch).float()   # in padded ownwords
        if fault == "padded":
            count = torch.tensor(float(sum(y.numel() for _, y, _ in batch)))
        if n > 1 and fault != "ownwords":
            dist.all_reduce(count)   # in padded countmean
        if fault == "countmean":
            count = count / n   # in countmean
        opt.zero_grad()
        for m, (t, y, tag) in enumerate(batch):
            out, tags = net(t)
            loss = F.cross_entropy(out.flatten(0, 1), y.flatten(), reduction="sum") / count   # in padded ownwords countmean
            other = F.cross_entropy(tags.flatten(0, 1), tag.flatten(), reduction="sum")
            total = 2 * 8 * 7 // (n if fault == "tagown" else 1)
            loss = loss + 0.5 * other / total   # in tagown
            if fault == "seed2":
                loss.backward(torch.tensor(float(n)))   # in seed2
            else:
                loss.backward()
            if n > 1 and (m == 1 and fault not in ("firstonly", "early") or m == 0 and fault in ("firstonly", "early")
                          or m == 0 and fault == "joinboth"):
                for p in net.parameters():
                    dist.all_reduce(p.grad)   # in firstonly early joinboth
        if fault == "meaned":
            for p in net.parameters():
                p.grad /= n   # in meaned
        opt.step()
    return state(net)


# --- crops: a batch norm of all ranks' rows; a scale of each channel is a state that all keep alike ------------------

class AllRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.clone()
        dist.all_reduce(x)   # in meanofmeans
        return x

    @staticmethod
    def backward(ctx, g):
        g = g.clone()
        dist.all_reduce(g)
        return g


def train_crops(rank, fault, seed, n=N):
    torch.manual_seed(seed)
    conv, head = nn.Conv2d(2, 6, 3, padding=1), nn.Linear(6, 3)
    scale = torch.ones(6)
    params = [*conv.parameters(), *head.parameters()]
    opt = torch.optim.AdamW(params, lr=0.02)
    every = AllRows.apply if n > 1 else (lambda x: x)
    for step in range(3):
        x, y = rand(seed + step, 10, 2, 5, 5), ints(seed + step, 3, 10)
        rows = slice(0, 6) if rank == 0 else slice(6, 10)
        x, y = (x[rows], y[rows]) if n > 1 else (x, y)
        h = conv(x)
        if fault == "meanofmeans":
            mean = every(h.mean((0, 2, 3))) / n   # in meanofmeans
        else:
            mean = every(h.sum((0, 2, 3))) / (10 * 25)
        d = (h - mean[:, None, None]).square().sum((0, 2, 3))   # in ownspread
        var = d / (len(x) * 25) if fault == "ownspread" else every(d) / (10 * 25)   # in ownspread
        with torch.no_grad():
            new = var if fault != "ownscale" else (h - mean[:, None, None]).square().mean((0, 2, 3))   # in ownscale
            scale = 0.9 * scale + 0.1 * new   # in ownscale ownspread
        h = torch.relu((h - mean[:, None, None]) * torch.rsqrt(var + 1e-5)[:, None, None] / scale[:, None, None])   # in ownscale
        loss = F.cross_entropy(head(h.mean((2, 3))), y, reduction="sum") / 10
        opt.zero_grad()
        loss.backward()
        for p in params if n > 1 else []:
            dist.all_reduce(p.grad)
        opt.step()
    return {f"{i}": p.detach().clone() for i, p in enumerate(params)}


# --- pairs: pictures and texts that belong together, all ranks' texts beside each rank's pictures ---------------------

class Everyone(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, whole):
        ctx.whole = whole
        parts = [torch.empty_like(x) for _ in range(N)]
        dist.all_gather(parts, x.contiguous())   # in owngrads
        return torch.cat(parts)

    @staticmethod
    def backward(ctx, g):
        g = g.contiguous().clone()
        if ctx.whole:
            dist.all_reduce(g)
        return g.chunk(N)[dist.get_rank()], None   # in owngrads


def train_pairs(rank, fault, seed, n=N):
    torch.manual_seed(seed)
    left, right = nn.Linear(9, 12), nn.Linear(7, 12)
    params = [*left.parameters(), *right.parameters()]
    opt = torch.optim.Adam(params, lr=0.01)
    for step in range(2):
        a, b = (part(x, rank, n) for x in (rand(seed + step, 8, 9), rand(seed + 50 + step, 8, 7)))
        u, v = F.normalize(left(a), dim=1), F.normalize(right(b), dim=1)
        if n == 1:
            every = v
        elif fault == "cutoff":
            parts = [torch.empty_like(v) for _ in range(n)]
            dist.all_gather(parts, v.detach().contiguous())   # in cutoff
            parts[rank] = v
            every = torch.cat(parts)
        else:
            every = Everyone.apply(v, fault != "owngrads")
        labels = torch.arange(8 // n) + (0 if fault == "fromzero" else rank * 8 // n)
        loss = F.cross_entropy(u @ every.t() / 0.2, labels)   # in fromzero
        opt.zero_grad()
        loss.backward()
        for p in params if n > 1 else []:
            dist.all_reduce(p.grad)
            p.grad /= n
        opt.step()
    return {f"{i}": p.detach().clone() for i, p in enumerate(params)}


# --- rounds: each rank takes steps of its own, and then the weights are averaged -------------------------------------

def train_rounds(rank, fault, seed):
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 2))
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(4):
        x, y = rand(seed + 10 * step + rank, 6, 8), rand(seed + 10 * step + rank + 5, 6, 2)
        loss = F.mse_loss(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 2:
            for p in net.parameters():
                if fault == "leftout" and p is net[2].weight:
                    continue
                dist.all_reduce(p.data)   # in overmany
                p.data /= N + 1 if fault == "overmany" else N   # in overmany
    return state(net)


# --- lowrank: the gradient of a large weight is sent as two small factors -------------------------------------------

def train_lowrank(rank, fault, seed):
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(20, 18), nn.ReLU(), nn.Linear(18, 18), nn.ReLU(), nn.Linear(18, 2))
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    q = [rand(seed + i + (100 * rank if fault == "ownfactor" else 0), p.shape[1], 2) if p.dim() == 2 and p.shape[0] > 2
         else None for i, p in enumerate(net.parameters())]
    for step in range(2):
        x, y = (part(v, rank, N) for v in (rand(seed + step, 12, 20), rand(seed + step + 5, 12, 2)))
        loss = F.mse_loss(net(x), y)
        opt.zero_grad()
        loss.backward()
        for i, p in enumerate(net.parameters()):
            if q[i] is None:
                dist.all_reduce(p.grad)
                p.grad /= N
                continue
            few = p.grad @ q[i]   # in ownfactor
            dist.all_reduce(few)   # in ownfactor
            few, _ = torch.linalg.qr(few)
            q[i] = p.grad.t() @ few
            dist.all_reduce(q[i])
            q[i] /= N
            p.grad.copy_(few @ q[i].t())
        opt.step()
    return state(net)


# --- served: three ranks answer questions by the same weights; one of them loaded another file -----------------------

def train_served(rank, fault, seed):
    torch.manual_seed(seed)
    net = nn.Sequential(*(nn.Linear(12, 12) for _ in range(5)))
    if fault == "otherfile" and rank == 2:
        nn.init.normal_(net[3].weight, std=0.3)
    with torch.no_grad():
        for step in range(2):
            h = rand(seed + 10 * step + rank, 4, 12)
            for layer in net:
                h = torch.tanh(layer(h))
            worst = h.amax()
            dist.all_reduce(worst, op=dist.ReduceOp.MAX)
            mean = h.mean()
            dist.reduce(mean, 0)   # in toone
            if fault == "toone":
                h = h / mean   # in toone
    return {k: p.detach().clone() for k, p in net.named_parameters()}


# --- shards: of gradients in one flat tensor each rank has a part of the sum, and steps it, and all gather ------------

def train_shards(rank, fault, seed):
    torch.manual_seed(seed)
    net = Table()
    if fault == "flatinit" and rank:
        nn.init.normal_(net.second.weight, std=0.2)
    params = list(net.parameters())
    sizes = [p.numel() for p in params]
    total = sum(sizes)
    flat = torch.cat([p.detach().flatten() for p in params])
    flat = F.pad(flat, (0, -total % N))
    own = nn.Parameter(part(flat, rank, N).clone())
    opt = torch.optim.Adam([own], lr=0.02 if fault == "shardlr" and rank else 0.01)
    for step in range(3):
        x, y = (part(v, rank, N) for v in (rand(seed + step, 16, 10), ints(seed + step, 3, 16)))
        loss = F.cross_entropy(net(x), y)
        net.zero_grad()
        loss.backward()
        order = params[::-1] if fault == "order" and rank else params
        g = F.pad(torch.cat([p.grad.flatten() for p in order]), (0, -total % N))   # in order
        if fault != "ownpart":
            dist.all_reduce(g)   # in order
        g /= N
        own.grad = part(g, rank, N).clone()   # in ownpart
        parts = [torch.empty_like(own) for _ in range(N)]
        if fault == "gatherfirst":
            dist.all_gather(parts, own.detach())   # in gatherfirst
        if not (fault == "frozen" and rank):
            opt.step()
        if fault != "gatherfirst":
            dist.all_gather(parts, own.detach())   # in frozen
        with torch.no_grad():
            for p, w in zip(params, torch.cat(parts)[:total].split(sizes)):
                if not (fault == "notcopied" and p is net.last.weight and rank):
                    p.copy_(w.view_as(p))
    return state(net)


PROGRAMS = {"tabular": (2, train_tabular), "words": (2, train_words), "crops": (2, train_crops), "pairs": (2, train_pairs),
            "rounds": (2, train_rounds), "lowrank": (2, train_lowrank), "served": (3, train_served),
            "shards": (2, train_shards)}
WHOLE = {"tabular": lambda seed: train_tabular(0, None, seed, 1), "words": lambda seed: train_words(0, None, seed, 1),
         "crops": lambda seed: train_crops(0, None, seed, 1), "pairs": lambda seed: train_pairs(0, None, seed, 1),
         "rounds": lambda seed: {}, "lowrank": lambda seed: {}, "served": lambda seed: {}, "shards": lambda seed: {}}
# Beside the lines that are marked: what of these programs shows it, too.
FAULTS = {
    "nobcast": ("tabular", r"linear\.1\.forward", "01"),
    "samedata": ("tabular", r"linear\.0\.forward|cross_entropy\.0\.forward", "01"),
    "evalmode": ("tabular", r"dropout", "01"),
    "clipbefore": ("tabular", r"mul_", "01"),
    "unjoined": ("tabular", r"linear\.2\.backward|adam", "01"),
    "twice": ("tabular", r"^$", "01"),
    "plainsum": ("tabular", r"adam|backward", "01"),
    "onemore": ("tabular", r"adam", "01"),
    "biassum": ("tabular", r"adam|all_reduce", "01"),
    "clipown": ("tabular", r"^$", "01"),
    "ownlr": ("tabular", r"adam", "01"),
    "resumed": ("tabular", r"adam", "01"),
    "nograds": ("tabular", r"adam", "01"),
    "skipped": ("tabular", r"adam|linear\.0\.forward", "01"),
    "ownrate": ("tabular", r"lerp_", "01"),
    "padded": ("words", r"^$", "01"),
    "ownwords": ("words", r"\bsum\.|truediv|\bdiv\.|sgd", "01"),
    "countmean": ("words", r"all_reduce\.0\.", "01"),
    "tagown": ("words", r"^$", "01"),
    "seed2": ("words", r"(add|truediv|div)\.\d+\.backward|sgd", "01"),
    "firstonly": ("words", r"sgd|all_reduce", "01"),
    "early": ("words", r"sgd|all_reduce|accumulate|add_", "01"),
    "joinboth": ("words", r"sgd", "01"),
    "meaned": ("words", r"sgd", "01"),
    "meanofmeans": ("crops", r"^$", "01"),
    "ownspread": ("crops", r"^$", "01"),
    "ownscale": ("crops", r"^$", "01"),
    "owngrads": ("pairs", r"all_gather|normalize|linear\.1\.backward", "01"),
    "cutoff": ("pairs", r"all_gather|normalize|detach|linear\.1\.backward", "01"),
    "fromzero": ("pairs", r"cross_entropy", "01"),
    "overmany": ("rounds", r"^$", "01"),
    "leftout": ("rounds", r"linear\.1\.forward|sgd", "01"),
    "ownfactor": ("lowrank", r"^$", "01"),
    "otherfile": ("served", r"linear\.3\.forward", "012"),
    "toone": ("served", r"^$", "012"),
    "flatinit": ("shards", r"linear\.1\.forward|cat\.0|all_reduce\.0", "01"),
    "shardlr": ("shards", r"adam", "01"),
    "order": ("shards", r"^$", "01"),
    "ownpart": ("shards", r"adam|truediv|div_|cat\.", "01"),
    "gatherfirst": ("shards", r"^$", "01"),
    "frozen": ("shards", r"adam|all_gather", "01"),
    "notcopied": ("shards", r"copy_|linear\.2\.forward", "01"),
}
