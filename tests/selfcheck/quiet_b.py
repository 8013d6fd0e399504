"""Right programs of replicas that are kept alike by hand, or that part by design and meet again.

Each train(rank, seed, n) is a user's program; n = 1: what one process with the whole batch does.
"""
import copy

import accrecord   # which scripts_frame finds
import functorch
import torch
import torch.distributed as dist
import torch.distributed.nn.functional as dnf
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from torch.distributed.optim import PostLocalSGDOptimizer
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from quiet_kit import D, average, choose, draw, mine, one, state
from scripts_frame import right


# --- localsgd: ranks are averaged each second step only ------------------------------------------------------

def local_net(seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(D, 12), nn.Hardswish(), nn.Linear(12, 2))


def local_loss(model, r, s, seed):
    x, y = draw(seed + s + 50 * r, 6, D), draw(seed + s + 50 * r + 20, 6, 2)
    return F.mse_loss(model(x), y)


def train_localsgd(rank, seed):
    model = local_net(seed)
    opt = PostLocalSGDOptimizer(torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
                                PeriodicModelAverager(period=2, warmup_steps=1))
    for s in range(5):
        opt.zero_grad()
        local_loss(model, rank, s, seed).backward()
        opt.step()
    return state(model)


def whole_localsgd(seed, n=3):
    models = [local_net(seed) for _ in range(n)]
    opts = [torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9) for m in models]
    for s in range(5):
        for r, (m, opt) in enumerate(zip(models, opts)):
            opt.zero_grad()
            local_loss(m, r, s, seed).backward()
            opt.step()
        if s in (1, 3):
            mean = torch.stack([parameters_to_vector(m.parameters()) for m in models]).mean(0).detach()
            for m in models:
                vector_to_parameters(mean.clone(), m.parameters())
    return [state(m) for m in models]


# --- syncbn: statistics of all ranks' rows, with autograd through the sum -----------------------------------

class SyncNorm(nn.BatchNorm1d):
    def forward(self, x):
        rows = x.shape[0] * dist.get_world_size()
        mean = dnf.all_reduce(x.sum(0)) / rows
        var = dnf.all_reduce((x - mean).square().sum(0)) / rows
        with torch.no_grad():
            self.running_mean.lerp_(mean, self.momentum)
            self.running_var.lerp_(var * rows / (rows - 1), self.momentum)
        return (x - mean) * torch.rsqrt(var + self.eps) * self.weight + self.bias


def train_syncbn(rank, seed, n=2):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(D, 12), (SyncNorm if n > 1 else nn.BatchNorm1d)(12), nn.Mish(), nn.Linear(12, 3))
    opt = torch.optim.SGD(model.parameters(), lr=0.3)
    for s in range(2):
        x, y = mine(rank, n, draw(seed + s, 12, D), choose(seed + s + 9, 3, 12))
        opt.zero_grad()
        F.cross_entropy(model(x), y).backward()
        average(model.parameters(), n)
        opt.step()
    # What is subtracted by the norm has a gradient of 0 but for rounding.
    return {k: v for k, v in state(model).items() if k != "0.bias"}


# --- overlap: sums are started as soon as a gradient is there, and waited for before the step ----------------

def train_overlap(rank, seed, n=3):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(D, 16), nn.GLU(), nn.Linear(8, 8), nn.CELU(), nn.Linear(8, 2))
    opt = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    pending, keep = [], []

    def start(p):
        def hook(*_):
            p.grad.div_(n)
            pending.append(dist.all_reduce(p.grad, async_op=True))
        return hook
    if n > 1:
        for p in model.parameters():
            node = p.expand_as(p).grad_fn.next_functions[0][0]   # its AccumulateGrad
            node.register_hook(start(p))
            keep.append(node)
    for s in range(2):
        x, y = mine(rank, n, draw(seed + s, 9, D), draw(seed + s + 9, 9, 2))
        opt.zero_grad(set_to_none=True)
        F.mse_loss(model(x), y).backward()
        for work in pending:
            work.wait()
        pending.clear()
        with torch.no_grad():   # adaptive clipping: each row by the norm of its weights
            for p in model.parameters():
                axes = list(range(1, p.ndim)) or None
                limit = 0.1 * p.norm(dim=axes, keepdim=True).clamp(min=1e-3)
                norm = p.grad.norm(dim=axes, keepdim=True).clamp(min=1e-6)
                p.grad.copy_(torch.where(norm > limit, p.grad * limit / norm, p.grad))
        opt.step()
    return state(model)


# --- signs: one bit of each gradient and a scale; what that loses stays on the rank --------------------------

def train_signs(rank, seed, n=2, ranks=2):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(D, 10), nn.Tanh(), nn.Linear(10, 2))
    opt = torch.optim.SGD(model.parameters(), lr=0.2)
    lost = {r: 0.0 for r in ([rank] if n > 1 else range(ranks))}
    for s in range(3):
        sent = []
        for r in lost:
            x, y = mine(r, ranks, draw(seed + s, 8, D), draw(seed + s + 9, 8, 2))
            opt.zero_grad()
            F.mse_loss(model(x), y).backward()
            want = parameters_to_vector([p.grad for p in model.parameters()]) + lost[r]
            scale, signs = want.abs().mean(), want >= 0
            lost[r] = want - torch.where(signs, scale, -scale)
            sent.append((signs.to(torch.uint8), scale))
        if n > 1:
            signs, scales = [torch.empty_like(sent[0][0]) for _ in range(n)], [torch.empty(()) for _ in range(n)]
            dist.all_gather(signs, sent[0][0])
            dist.all_gather(scales, sent[0][1])
            sent = list(zip(signs, scales))
        mean = sum((signs.float() * 2 - 1) * scale for signs, scale in sent) / len(sent)
        at = 0
        for p in model.parameters():
            p.grad = mean[at:at + p.numel()].view_as(p).clone()
            at += p.numel()
        opt.step()
    return state(model)


# --- private: gradients of each example, clipped, with noise that all ranks draw alike ----------------------

def train_private(rank, seed, n=2):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(D, 8), nn.Tanh(), nn.Linear(8, 2))
    opt = torch.optim.SGD(model.parameters(), lr=0.3)
    noise = torch.Generator().manual_seed(seed)
    net, params = functorch.make_functional(model)

    def loss(params, x, y):
        return F.mse_loss(net(params, x), y)
    for s in range(2):
        x, y = mine(rank, n, draw(seed + s, 6, D), draw(seed + s + 9, 6, 2))
        params = tuple(p.detach() for p in model.parameters())
        each = functorch.vmap(functorch.grad(loss), in_dims=(None, 0, 0))(params, x, y)
        norm = torch.stack([g.flatten(1).norm(dim=1) for g in each]).norm(dim=0)
        factor = (0.5 / norm).clamp(max=1)
        opt.zero_grad()
        for p, g in zip(model.parameters(), each):
            total = torch.einsum("b,b...->...", factor, g)
            if n > 1:
                dist.all_reduce(total)
            p.grad = (total + 0.05 * torch.randn(p.shape, generator=noise)) / 6
        opt.step()
    return state(model)


# --- maml: a task for each rank, gradients through an inner step --------------------------------------------

def train_maml(rank, seed, n=3):
    torch.manual_seed(seed)
    w = [nn.Parameter(torch.randn(D, 6) * 0.3), nn.Parameter(torch.zeros(6)), nn.Parameter(torch.randn(6, 1) * 0.3)]
    opt = torch.optim.SGD(w, lr=0.1)

    def loss(w, x, y):
        return F.mse_loss(torch.sin(x @ w[0] + w[1]) @ w[2], y)
    for s in range(2):
        accrecord.step(s)   # there is no module by which steps could be told
        opt.zero_grad()
        for task in [rank] if n > 1 else range(3):
            k = 100 * seed + 10 * s + task
            grads = torch.autograd.grad(loss(w, draw(k, 5, D), draw(k + 40, 5, 1)), w, create_graph=True)
            fast = [p - 0.4 * g for p, g in zip(w, grads)]
            (loss(fast, draw(k + 60, 5, D), draw(k + 80, 5, 1)) / 3).backward()
        average(w, n, "sum")
        opt.step()
    return {str(i): p.detach() for i, p in enumerate(w)}


# --- physics: second derivatives to the input, LBFGS that asks again for losses and gradients ----------------

def train_physics(rank, seed, n=2):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1)).double()
    opt = torch.optim.LBFGS(model.parameters(), lr=0.3, max_iter=3, history_size=4)
    for s in range(2):
        accrecord.step(s)   # the model is called by the optimizer alone
        x = mine(rank, n, draw(seed + s, 10, 1).double()).requires_grad_(True)

        def closure():
            opt.zero_grad()
            u = model(x)
            du, = torch.autograd.grad(u.sum(), x, create_graph=True)
            ddu, = torch.autograd.grad(du.sum(), x, create_graph=True)
            loss = (ddu + u - x.detach().sin()).square().mean() + model(torch.zeros(1, 1).double()).square().sum()
            loss.backward()
            average(model.parameters(), n)
            total = loss.detach().clone()
            if n > 1:
                dist.all_reduce(total)
            return total / n
        opt.step(closure)
    return {k: v.float() for k, v in state(model).items()}


# --- ring: a ring all_reduce of one flat gradient, by send and recv ------------------------------------------

def ring_sum(flat, rank, n):
    """First each rank gets the sum of one part, then the sums go round."""
    parts, after, before = list(flat.chunk(n)), (rank + 1) % n, (rank - 1) % n
    for turn in range(2 * (n - 1)):
        out, into = (rank - turn) % n, (rank - turn - 1) % n
        got = torch.empty_like(parts[into])
        work = dist.isend(parts[out].clone(), after)
        dist.recv(got, before)
        work.wait()
        if turn < n - 1:
            parts[into] += got
        else:
            parts[into].copy_(got)
    return flat


def train_ring(rank, seed, n=3):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Conv2d(1, 3, 3), nn.GroupNorm(1, 3), nn.ReLU(), nn.Flatten(), nn.Linear(27, 3))
    opt = torch.optim.Adamax(model.parameters(), lr=0.02, eps=1e-3)
    for s in range(2):
        # Of unequal parts: each rank's mean counts by its rows.
        rows = [3, 2, 1] if n > 1 else [6]
        x = draw(seed + s, 6, 1, 5, 5).split(rows)[rank]
        y = choose(seed + s + 9, 3, 6).split(rows)[rank]
        opt.zero_grad()
        (F.nll_loss(model(x).log_softmax(-1), y) * rows[rank] / 6).backward()
        if n > 1:
            flat = torch.cat([p.grad.flatten() for p in model.parameters()])
            flat = ring_sum(F.pad(flat, (0, -len(flat) % n)), rank, n)
            at = 0
            for p in model.parameters():
                p.grad.copy_(flat[at:at + p.numel()].view_as(p))
                at += p.numel()
        nn.utils.clip_grad_value_(model.parameters(), 0.2)
        opt.step()
    return state(model)


# --- nodes: a sum within each node, among their first ranks, and back ----------------------------------------

def train_nodes(rank, seed, n=4):
    if n > 1:
        nodes = [dist.new_group(r) for r in ([0, 1], [2, 3])]
        heads, node, head = dist.new_group([0, 2]), nodes[rank // 2], rank // 2 * 2
    torch.manual_seed(seed + rank)   # each as it likes: they get rank 0's
    model = nn.Sequential(nn.Linear(D, 8), nn.LogSigmoid(), nn.Linear(8, 4))
    if n > 1:
        for p in model.parameters():
            dist.broadcast(p.data, 0)
    opt = torch.optim.RMSprop(model.parameters(), lr=0.01, eps=1e-2)
    for s in range(2):
        x, y = mine(rank, n, draw(seed + s, 8, D), draw(seed + s + 9, 8, 4).softmax(-1))
        opt.zero_grad()
        F.kl_div(model(x).log_softmax(-1), y, reduction="batchmean").backward()
        for p in model.parameters() if n > 1 else []:
            dist.reduce(p.grad, head, group=node)
            if rank == head:
                dist.all_reduce(p.grad, group=heads)
                p.grad /= n
            dist.broadcast(p.grad, head, group=node)
        opt.step()
        # The replicas are asked whether they agree.
        total = parameters_to_vector(model.parameters()).detach().double().sum()
        if n > 1:
            most, least = total.clone(), total.clone()
            dist.all_reduce(most, dist.ReduceOp.MAX)
            dist.all_reduce(least, dist.ReduceOp.MIN)
            assert most == least
    return state(model)


# --- federated: clients with data of their own sizes, weighted means ----------------------------------------

SIZES = [4, 10, 6]


def client(model, r, seed):
    """Two local steps from the common weights, with the pull of FedProx to them."""
    start = [p.detach().clone() for p in model.parameters()]
    opt = torch.optim.SGD(model.parameters(), lr=0.2)
    x, y = draw(seed + 10 * r, SIZES[r], D) + r, choose(seed + 10 * r + 5, 3, SIZES[r])
    for _ in range(2):
        opt.zero_grad()
        loss = F.cross_entropy(model(x), y)
        pull = sum((p - q).square().sum() for p, q in zip(model.parameters(), start))
        (loss + 0.1 * pull).backward()
        opt.step()


def train_federated(rank, seed):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(D, 6), nn.ReLU6(), nn.Linear(6, 3))
    for _ in range(2):
        client(model, rank, seed)
        size = torch.tensor(float(SIZES[rank]))
        total = size.clone()
        dist.all_reduce(total)
        with torch.no_grad():
            for p in model.parameters():
                p.mul_(size / total)
                dist.all_reduce(p.data)
    return state(model)


def whole_federated(seed):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(D, 6), nn.ReLU6(), nn.Linear(6, 3))
    for _ in range(2):
        copies = [copy.deepcopy(model) for _ in SIZES]
        for r, m in enumerate(copies):
            client(m, r, seed)
        with torch.no_grad():
            for p, *ps in zip(model.parameters(), *(m.parameters() for m in copies)):
                p.copy_(sum(q * k / sum(SIZES) for q, k in zip(ps, SIZES)))
    return state(model)


# --- population: each rank its own rate; the worst takes the best's weights ---------------------------------

def member(r, seed):
    torch.manual_seed(seed + 10 * r)
    model = nn.Sequential(nn.Linear(D, 6), nn.Tanh(), nn.Linear(6, 1))
    return model, torch.optim.SGD(model.parameters(), lr=0.02 * 3 ** r)


def fit(model, opt, s, seed):
    opt.zero_grad()
    x = draw(seed + s, 8, D)
    F.mse_loss(model(x), x[:, :1]).backward()
    opt.step()
    with torch.no_grad():
        held = draw(seed + 77, 16, D)
        return F.mse_loss(model(held), held[:, :1])


def train_population(rank, seed):
    model, opt = member(rank, seed)
    for s in range(3):
        scores = [torch.empty(()) for _ in range(3)]
        dist.all_gather(scores, fit(model, opt, s, seed))
        scores = torch.stack(scores)
        best, worst = scores.argmin().item(), scores.argmax().item()
        if rank == best:
            dist.send(parameters_to_vector(model.parameters()).detach(), worst)
        elif rank == worst:
            got = torch.empty(sum(p.numel() for p in model.parameters()))
            dist.recv(got, best)
            vector_to_parameters(got, model.parameters())
            opt.param_groups[0]["lr"] *= 0.8
    return state(model)


def whole_population(seed):
    all_of = [member(r, seed) for r in range(3)]
    for s in range(3):
        scores = torch.stack([fit(m, o, s, seed) for m, o in all_of])
        best, worst = scores.argmin().item(), scores.argmax().item()
        all_of[worst][0].load_state_dict(all_of[best][0].state_dict())
        all_of[worst][1].param_groups[0]["lr"] *= 0.8
    return [state(m) for m, _ in all_of]


# --- scaled: a loss scale that is too much for one rank's batch: all skip that step and halve it --------------

def train_scaled(rank, seed, n=2):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(D, 8), nn.Softsign(), nn.Linear(8, 2))
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scale = 2.0 ** 20
    for s in range(4):
        x, y = draw(seed + s, 8, D), draw(seed + s + 9, 8, 2)
        if s == 1:
            y[-1] = 1e34   # in the last rank's rows
        x, y = mine(rank, n, x, y)
        opt.zero_grad()
        (F.mse_loss(model(x), y) * scale).backward()
        bad = torch.stack([~p.grad.isfinite().all() for p in model.parameters()]).any().float()
        if n > 1:
            dist.all_reduce(bad, dist.ReduceOp.MAX)
        if bad:
            scale /= 2
            continue
        average(model.parameters(), n)
        for p in model.parameters():
            p.grad /= scale
        opt.step()
    return state(model)


# --- policy: each rank plays by itself, advantages by the mean and deviation of all -------------------------

def train_policy(rank, seed, n=2):
    torch.manual_seed(seed)
    policy, value = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3)), nn.Linear(4, 1)
    opt = torch.optim.SGD([{"params": policy.parameters()}, {"params": value.parameters(), "lr": 0.05}], lr=0.2)
    for s in range(2):
        games = [rank] if n > 1 else range(2)
        obs = torch.cat([draw(100 * seed + 10 * s + g, 5, 4) for g in games])
        act = torch.cat([choose(100 * seed + 10 * s + g + 50, 3, 5) for g in games])
        reward = obs[:, :3].gather(1, act[:, None]).squeeze(1)
        with torch.no_grad():
            old = policy(obs).log_softmax(-1).gather(1, act[:, None]).squeeze(1)
            adv = reward - value(obs).squeeze(1)
        sums = torch.stack([adv.sum(), adv.square().sum(), torch.tensor(float(len(adv)))])
        if n > 1:
            dist.all_reduce(sums)
        mean = sums[0] / sums[2]
        adv = (adv - mean) / (sums[1] / sums[2] - mean ** 2 + 1e-6).sqrt()
        for _ in range(2):
            logp = policy(obs).log_softmax(-1)
            ratio = (logp.gather(1, act[:, None]).squeeze(1) - old).exp()
            gain = torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv).mean()
            entropy = -(logp.exp() * logp).sum(-1).mean()
            loss = 0.5 * F.mse_loss(value(obs).squeeze(1), reward) - gain - 0.01 * entropy
            opt.zero_grad()
            loss.backward()
            average([*policy.parameters(), *value.parameters()], n)
            opt.step()
    return {**state(policy, "policy."), **state(value, "value.")}


# --- sparse: embeddings whose gradients are rows; all ranks' rows are gathered -------------------------------

def train_sparse(rank, seed, n=2):
    torch.manual_seed(seed)
    bag, head = nn.EmbeddingBag(40, D, mode="sum", sparse=True), nn.Linear(D, 2)
    opts = [torch.optim.SparseAdam(bag.parameters(), lr=0.05, eps=1e-3), torch.optim.SGD(head.parameters(), lr=0.1)]
    for s in range(2):
        words, y = mine(rank, n, choose(seed + s, 40, 6, 4), choose(seed + s + 9, 2, 6))
        for opt in opts:
            opt.zero_grad(set_to_none=True)
        # Focal loss.
        logp = head(bag(words)).log_softmax(-1).gather(1, y[:, None])
        (-(1 - logp.exp()) ** 2 * logp).mean().backward()
        if n > 1:
            g = bag.weight.grad
            rows, values = g._indices()[0], g._values()   # one for each word: as many on each rank
            all_rows = [torch.empty_like(rows) for _ in range(n)]
            all_values = [torch.empty_like(values) for _ in range(n)]
            dist.all_gather(all_rows, rows)
            dist.all_gather(all_values, values)
            bag.weight.grad = torch.sparse_coo_tensor(torch.cat(all_rows)[None], torch.cat(all_values) / n, g.shape)
        average(head.parameters(), n)
        for opt in opts:
            opt.step()
    return {**state(bag, "bag."), **state(head, "head.")}


# --- lookahead: slow weights behind fast ones, gradients summed at rank 0 and given back ---------------------

def train_lookahead(rank, seed, n=3):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(D, 8), nn.LayerNorm(8), nn.LeakyReLU(), nn.Linear(8, 5))
    slow = [p.detach().clone() for p in model.parameters()]
    opt = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.8)
    for s in range(4):
        # Batches grow, and are of ranks' own sizes.
        k = 6 + 3 * s
        cuts = [k // 3 - 1, k // 3, k // 3 + 1] if n > 1 else [k]
        x, y = draw(seed + s, k, D).split(cuts)[rank], choose(seed + s + 9, 5, k).split(cuts)[rank]
        opt.zero_grad()
        (F.multilabel_soft_margin_loss(model(x), F.one_hot(y, 5), reduction="none").sum() / k).backward()
        for p in model.parameters() if n > 1 else []:
            parts = [torch.empty_like(p) for _ in range(n)] if rank == 0 else None
            dist.gather(p.grad, parts, 0)
            if rank == 0:
                p.grad = torch.stack(parts).sum(0)
            dist.scatter(p.grad, [p.grad.clone() for _ in range(n)] if rank == 0 else None, 0)
        opt.step()
        if s % 2:
            with torch.no_grad():
                for p, q in zip(model.parameters(), slow):
                    q += 0.5 * (p - q)
                    p.copy_(q)
    return state(model)


PROGRAMS = {
    "localsgd": (3, train_localsgd), "syncbn": (2, train_syncbn), "overlap": (3, train_overlap),
    "signs": (2, train_signs), "private": (2, train_private), "maml": (3, train_maml), "physics": (2, train_physics),
    "ring": (3, train_ring), "nodes": (4, train_nodes), "federated": (3, train_federated),
    "population": (3, train_population), "scaled": (2, train_scaled), "policy": (2, train_policy),
    "sparse": (2, train_sparse), "lookahead": (3, train_lookahead)}
WHOLE = {name: one(train) for name, (_, train) in PROGRAMS.items()}
# Where ranks part: each one's copy, in turn.
WHOLE.update(localsgd=whole_localsgd, federated=whole_federated, population=whole_population)
PROGRAMS = {name: (ranks, right(train)) for name, (ranks, train) in PROGRAMS.items()}
FAULTS = {}
