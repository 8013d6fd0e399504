"""Programs whose ranks hold parts of one network, and what goes wrong in such: columns and rows of a recommender, a
sequence in two parts, stages, experts.

As worth_data.py.
"""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

from worth_data import ints, part, rand, state

N, D, V = 2, 16, 24


class Copied(torch.autograd.Function):
    """To all ranks, whose gradients are summed up."""
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        g = g.clone()
        dist.all_reduce(g)
        return g


class Summed(torch.autograd.Function):
    """The sum of all ranks, each of which is given its gradient."""
    @staticmethod
    def forward(ctx, x):
        x = x.clone()
        dist.all_reduce(x)   # in biasfirst
        return x

    @staticmethod
    def backward(ctx, g):
        return g


# --- ratings: a large table and wide layers, a part of each on each rank; all ranks have all rows --------------------

class Ratings(nn.Module):
    def __init__(self, rank, fault):
        super().__init__()
        full = [nn.Embedding(V, D), *(nn.Linear(D, 4 * D) if i % 2 == 0 else nn.Linear(4 * D, D) for i in range(4))]
        self.table = nn.Parameter(full[0].weight.detach().chunk(N)[rank].clone())
        self.up = nn.ParameterList(nn.Parameter(full[i].weight.detach().chunk(N)[rank].clone()) for i in (1, 3))
        here = 0 if fault == "samerows" else rank
        self.down = nn.ParameterList(nn.Parameter(full[i].weight.detach().chunk(N, 1)[here].clone()) for i in (2, 4))
        self.bias = nn.ParameterList(nn.Parameter(0.1 * torch.ones(D)) for _ in range(2))
        self.norm = nn.ModuleList(nn.LayerNorm(D) for _ in range(2))
        if fault == "ownnorm" and rank:
            nn.init.normal_(self.norm[1].weight, 1.0, 0.2)
        wide = nn.Linear(D, 8)
        self.wide = nn.Parameter(wide.weight.detach().chunk(N)[rank].clone())
        self.out = nn.Linear(8, 3)
        self.rank, self.fault = rank, fault

    def forward(self, t, masks):
        first = self.rank * V // N
        mine = (t >= first) & (t < first + V // N)
        x = F.embedding((t - first).clamp(0, V // N - 1), self.table)   # in unmasked
        if self.fault != "unmasked":
            x = x * mine[..., None]
        x = Summed.apply(x)   # in unmasked
        for i in range(2):
            h = self.norm[i](x)
            if not (self.fault == "uncopied" and i):
                h = Copied.apply(h)
            h = F.linear(F.gelu(F.linear(h, self.up[i])), self.down[i])   # in uncopied samerows
            if self.fault == "biasfirst" and i:
                h = Summed.apply(h + self.bias[i])   # in biasfirst
            elif self.fault == "unsummed" and i:
                h = h + self.bias[i]   # in unsummed
            else:
                h = Summed.apply(h)
                if self.fault == "rowhalf" and i:
                    h = h / N   # in rowhalf
                h = h + self.bias[i]   # in rowhalf
            if self.fault == "byrank" and i:
                h = h * (1.0 + 0.1 * self.rank)   # in byrank
            x = x + h * masks[i]   # in unsummed ownmask
        y = F.linear(Copied.apply(x.mean(1)), self.wide)
        parts = [torch.empty_like(y) for _ in range(N)]
        dist.all_gather(parts, y.detach().contiguous())   # in rowsgathered
        parts[self.rank] = y
        if self.fault == "rowsgathered":
            y = torch.cat(parts).view(len(y), -1)   # in rowsgathered
        else:
            y = torch.cat(parts, -1)
        return self.out(y)   # in rowsgathered


def train_ratings(rank, fault, seed):
    torch.manual_seed(seed)
    net = Ratings(rank, fault)
    opt = torch.optim.AdamW(net.parameters(), lr=0.01)
    for step in range(2):
        s = seed + 100 * step + (50 * rank if fault == "owndata" else 0)
        t, y = ints(s, V, 6, 5), ints(s + 5, 3, 6)
        if fault == "ownlabels" and rank:
            y = y.roll(1)
        drawn = torch.Generator().manual_seed(s + (70 * rank if fault == "ownmask" else 0))
        masks = [torch.bernoulli(torch.full((6, 5, D), 0.8), generator=drawn) / 0.8 for _ in range(2)]   # in ownmask
        loss = F.cross_entropy(net(t, masks), y)   # in ownlabels
        opt.zero_grad()
        loss.backward()
        split = [net.table, *net.up, *net.down, net.wide]
        whole = [p for p in net.parameters() if all(p is not q for q in split)]
        square = sum(p.grad.square().sum() for p in split)   # in partnorm
        if fault == "wholetwice":
            square = square + sum(p.grad.square().sum() for p in whole)   # in wholetwice
        if fault != "partnorm":
            dist.all_reduce(square)   # in wholetwice
        if fault != "wholetwice":
            square = square + sum(p.grad.square().sum() for p in whole)   # in partnorm
        for p in net.parameters():
            p.grad.mul_(torch.clamp(0.1 / square.sqrt(), max=1.0))   # in partnorm
        opt.step()
    return state(net)


# --- tokens: each rank has a half of a sequence, and attends to the keys of both -------------------------------------

class Keys(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, fault):
        ctx.fault = fault
        parts = [torch.empty_like(x) for _ in range(N)]
        dist.all_gather(parts, x.contiguous())   # in keyback
        return torch.cat(parts, 1)

    @staticmethod
    def backward(ctx, g):
        if ctx.fault != "keyback":
            g = g.contiguous().clone()
            dist.all_reduce(g)
        return g.chunk(N, 1)[dist.get_rank()], None   # in keyback


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.place = nn.Embedding(V, D), nn.Embedding(12, D)
        self.qkv, self.o = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.norm, self.head = nn.LayerNorm(D), nn.Linear(D, V)

    def forward(self, t, first, fault):
        x = self.embed(t) + self.place(torch.arange(first, first + t.shape[1]))   # in samepos
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        k, v = Keys.apply(k, fault), Keys.apply(v, fault)
        return self.head(x + self.o((q @ k.transpose(1, 2) / 4).softmax(-1) @ v))


def train_tokens(rank, fault, seed):
    torch.manual_seed(seed)
    net = Reader()
    opt = torch.optim.Adam(net.parameters(), lr=0.01)
    for step in range(2):
        t, y = ints(seed + step, V, 4, 12), ints(seed + step + 5, V, 4, 12)
        y[:, 9:] = -100
        mine, target = t.chunk(N, 1)[rank], y.chunk(N, 1)[rank]
        out = net(mine, 0 if fault == "samepos" else 6 * rank, fault)
        count = (target != -100).sum().float() if fault == "owncount" else (y != -100).sum().float()   # in owncount
        loss = F.cross_entropy(out.flatten(0, 1), target.flatten(), reduction="sum") / count   # in owncount
        opt.zero_grad()
        loss.backward()
        for p in net.parameters():
            if fault == "oneleft" and p is net.o.weight:
                continue
            dist.all_reduce(p.grad)   # in averaged
            if fault == "averaged":
                p.grad /= N   # in averaged
            if fault == "embedhalf" and p is net.embed.weight:
                p.grad /= N   # in embedhalf
        opt.step()
    return state(net)


# --- stages: two stages, two parts of a batch, words' weights on both ------------------------------------------------

def train_stages(rank, fault, seed):
    torch.manual_seed(seed)
    embed, first, last = nn.Embedding(V, D), nn.Linear(D, D), nn.Linear(D, D)
    if fault == "othertie" and rank:
        nn.init.normal_(embed.weight, std=0.3)
    params = [embed.weight, *(first if rank == 0 else last).parameters()]
    opt = torch.optim.SGD(params, lr=0.2)
    for step in range(2):
        t, y = ints(seed + step, V, 4, 6).chunk(2), ints(seed + step + 5, V, 4, 6).chunk(2)
        opt.zero_grad()
        if rank == 0:
            made = [torch.tanh(first(embed(x))) for x in t]
            for i, h in enumerate(made):
                dist.send((made[0] if fault == "sentagain" else h).detach().contiguous(), 1)   # in sentagain
            got = []
            for h in made:
                g = torch.empty_like(h)
                dist.recv(g, 1)
                got.append(g)
            for i, h in enumerate(made):
                h.backward(got[1 - i if fault == "crossed" else i])   # in crossed
        else:
            came, grads = [], []
            for _ in t:
                x = torch.empty(2, 6, D)
                dist.recv(x, 0)   # in unused
                came.append(x.requires_grad_())
            for i in range(2):
                x = came[0] if fault == "unused" else came[i]
                out = F.linear(F.gelu(last(x)), embed.weight)   # in unused
                loss = F.cross_entropy(out.flatten(0, 1), y[i].flatten()) / 2
                loss.backward()
            for x in came:
                grads.append(x.grad if x.grad is not None else torch.zeros_like(x))
            for g in grads:
                dist.send((grads[0] if fault == "gradagain" else g).contiguous(), 0)   # in gradagain
        if fault != "untied":
            dist.all_reduce(embed.weight.grad)   # in tiemean
            if fault == "tiemean":
                embed.weight.grad /= N   # in tiemean
        opt.step()
    return {f"{i}": p.detach().clone() for i, p in enumerate(params)}


# --- experts: each rank has one of two experts and a half of the tokens ----------------------------------------------

class Exchange(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, back):
        ctx.back, out = back, torch.empty_like(x)
        dist.all_to_all_single(out, x.contiguous())
        return out

    @staticmethod
    def backward(ctx, g):
        if not ctx.back:
            return g, None
        out = torch.empty_like(g)
        dist.all_to_all_single(out, g.contiguous())
        return out, None


def train_experts(rank, fault, seed):
    torch.manual_seed(seed)
    embed, router, head = nn.Linear(8, D), nn.Linear(D, 2, bias=False), nn.Linear(D, 3)
    experts = [nn.Sequential(nn.Linear(D, 20), nn.ReLU(), nn.Linear(20, D)) for _ in range(2)]
    if fault == "ownrouter" and rank:
        nn.init.normal_(router.weight, std=0.5)
    mine = experts[rank]
    shared = [*embed.parameters(), router.weight, *head.parameters()]
    opt = torch.optim.SGD([*shared, *mine.parameters()], lr=0.1)
    for step in range(2):
        x, y = (part(v, rank, N) for v in (rand(seed + step, 16, 8), ints(seed + step, 3, 16)))
        h = torch.tanh(embed(x))
        p, where = router(h).softmax(-1).topk(1)   # in ownrouter
        send = torch.cat([h * (where == e) for e in range(2)])
        got = Exchange.apply(send, fault != "noback")   # in noback
        done = Exchange.apply(mine(got), True)
        h = h + p * sum(part(done, e, N) * (where == e) for e in range(2))
        loss = F.cross_entropy(head(h), y)
        opt.zero_grad()
        loss.backward()
        for w in shared:
            if fault == "leftrouter" and w is router.weight:
                continue
            dist.all_reduce(w.grad)
            w.grad /= N
        for w in mine.parameters():
            if fault == "joined":
                dist.all_reduce(w.grad)   # in joined
            if fault != "undivided":
                w.grad /= N   # in joined
        opt.step()
    return {f"{i}": w.detach().clone() for i, w in enumerate([*shared, *mine.parameters()])}


PROGRAMS = {"ratings": (2, train_ratings), "tokens": (2, train_tokens), "stages": (2, train_stages),
            "experts": (2, train_experts)}
WHOLE = {name: lambda seed: {} for name in PROGRAMS}
FAULTS = {
    "unmasked": ("ratings", r"^$", "01"),
    "uncopied": ("ratings", r"layer_norm\.1\.backward", "01"),
    "samerows": ("ratings", r"^$", "01"),
    "biasfirst": ("ratings", r"^$", "01"),
    "unsummed": ("ratings", r"^$", "01"),
    "rowhalf": ("ratings", r"^$", "01"),
    "byrank": ("ratings", r"^$", "01"),
    "ownmask": ("ratings", r"bernoulli|mul", "01"),
    "ownnorm": ("ratings", r"layer_norm\.1\.forward", "01"),
    "rowsgathered": ("ratings", r"^$", "01"),
    "owndata": ("ratings", r"embedding|clamp|sub|\bge\.|__sub__", "01"),
    "ownlabels": ("ratings", r"cross_entropy", "01"),
    "partnorm": ("ratings", r"^$", "01"),
    "wholetwice": ("ratings", r"^$", "01"),
    "keyback": ("tokens", r"(linear\.0|chunk\.0|split\.0)\.backward|all_gather", "01"),
    "samepos": ("tokens", r"embedding\.1\.|arange", "01"),
    "owncount": ("tokens", r"^$", "01"),
    "oneleft": ("tokens", r"linear\.1\.backward|adam", "01"),
    "averaged": ("tokens", r"adam", "01"),
    "embedhalf": ("tokens", r"adam", "01"),
    "othertie": ("stages", r"embedding\.0\.forward|linear\.[13]\.forward", "01"),
    "sentagain": ("stages", r"send\.1\.", "01"),
    "crossed": ("stages", r"tanh\.[01]\.backward|linear\.[01]\.backward|recv", "01"),
    "unused": ("stages", r"recv\.1\.", "01"),
    "gradagain": ("stages", r"send\.[13]\.", "01"),
    "untied": ("stages", r"embedding\.\d\.backward|linear\.\d\.backward|sgd", "01"),
    "tiemean": ("stages", r"sgd", "01"),
    "ownrouter": ("experts", r"linear\.1\.forward|softmax|topk", "01"),
    "noback": ("experts", r"all_to_all|(cat|mul)\.\d\.backward", "01"),
    "leftrouter": ("experts", r"linear\.1\.backward|sgd", "01"),
    "joined": ("experts", r"sgd", "01"),
    "undivided": ("experts", r"linear\.[24]\.backward|linear\.3\.backward|sgd", "01"),
}
