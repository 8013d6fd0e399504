"""Programs of calm.py whose ranks have tasks of their own. As calm_data.py."""
import copy

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

import accrecord
from calm_data import batch, fit, grads_of, kept, mean_, mean_grads, mlp, put
from scripts_frame import right


def descend(params, grads, lr):
    with torch.no_grad():
        for p, g in zip(params, grads):
            p -= lr * g


class Player(nn.Module):
    """A generator or a discriminator, whose norm is spectral."""

    def __init__(self, seed, *dims, spectral=False):
        super().__init__()
        torch.manual_seed(seed)
        first = nn.Linear(*dims[:2])
        self.first = nn.utils.spectral_norm(first) if spectral else first
        self.last = nn.Linear(*dims[1:])

    def forward(self, x):
        return self.last(F.leaky_relu(self.first(x), 0.2))


# A GAN: rank 0 has the generator, rank 1 the discriminator; samples go one way and their gradient the other.
def gan(rank, seed):
    model = Player(seed + 1, 8, 16, 1, spectral=True) if rank else Player(seed, 4, 16, 8)
    opt = torch.optim.SGD(model.parameters(), lr=0.1 if rank else 0.3)
    for step in range(2):
        if rank == 0:
            fake = model(batch(seed, step, 6, 4)[0])
            dist.send(fake.detach(), 1)
            g = torch.empty_like(fake)
            dist.recv(g, 1)
            opt.zero_grad()
            fake.backward(g)
        else:
            fake = torch.empty(6, 8)
            dist.recv(fake, 0)
            opt.zero_grad()
            real = model(batch(seed, 100 + step, 6)[0])
            (F.softplus(-real).mean() + F.softplus(model(fake)).mean()).backward()
            opt.step()
            fake.requires_grad_()
            g, = torch.autograd.grad(F.softplus(-model(fake)).mean(), fake)
            dist.send(g, 0)
            continue
        opt.step()
    return kept(model)


def gan_whole(seed):
    g, d = Player(seed, 4, 16, 8), Player(seed + 1, 8, 16, 1, spectral=True)
    for step in range(2):
        fake = g(batch(seed, step, 6, 4)[0])
        loss = F.softplus(-d(batch(seed, 100 + step, 6)[0])).mean() + F.softplus(d(fake.detach())).mean()
        descend(d.parameters(), torch.autograd.grad(loss, list(d.parameters())), 0.1)
        loss = F.softplus(-d(fake)).mean()
        descend(g.parameters(), torch.autograd.grad(loss, list(g.parameters())), 0.3)
    return [kept(g), kept(d)]


# An actor on each rank but the learner, which alone has an optimizer; policies come by broadcast every step.
def actor(rank, seed):
    policy = mlp(seed + rank, 8, 16, 4)
    if rank == 0:
        value = mlp(seed + 9, 8, 8, 1)
        opt = torch.optim.RMSprop([*policy.parameters(), *value.parameters()], lr=1e-2, eps=1e-2)
    g = torch.Generator().manual_seed(seed + rank)
    for step in range(3):
        for p in policy.parameters():
            dist.broadcast(p.data, 0)
        seen, did, reward = torch.zeros(4, 8), torch.zeros(4, dtype=torch.long), torch.zeros(4)
        if rank:
            with torch.no_grad():
                seen, goal = batch(seed, 3 * step + rank)
                did = torch.multinomial(policy(seen).softmax(-1), 1, generator=g)[:, 0]
                reward = goal.gather(1, did[:, None])[:, 0]
        lists = [[torch.zeros_like(t) for _ in range(3)] if rank == 0 else None for t in (seen, did, reward)]
        for t, got in zip((seen, did, reward), lists):
            dist.gather(t, got, 0)
        if rank == 0:
            seen, did, reward = (torch.cat(got[1:]) for got in lists)
            opt.zero_grad()
            learn(policy, value, seen, did, reward).backward()
            opt.step()
        accrecord.step()    # an actor has no optimizer to see it by
    return kept(policy, **({f"value.{k}": v for k, v in kept(value).items()} if rank == 0 else {}))


def learn(policy, value, seen, did, reward):
    expected = value(seen)[:, 0]
    gain = (reward - expected).detach()
    chance = policy(seen).log_softmax(-1).gather(1, did[:, None])[:, 0]
    return F.mse_loss(expected, reward) - (chance * gain).mean()


def actor_whole(seed):
    policy, value = mlp(seed, 8, 16, 4), mlp(seed + 9, 8, 8, 1)
    opt = torch.optim.RMSprop([*policy.parameters(), *value.parameters()], lr=1e-2, eps=1e-2)
    gs = [torch.Generator().manual_seed(seed + r) for r in range(3)]
    for step in range(3):
        old = kept(policy)
        seen, goal = (torch.cat(t) for t in zip(*(batch(seed, 3 * step + r) for r in (1, 2))))
        odds = policy(seen).softmax(-1).detach()
        did = [torch.multinomial(o, 1, generator=g)[:, 0] for g, o in zip(gs[1:], odds.chunk(2))]
        did = torch.cat(did)
        opt.zero_grad()
        learn(policy, value, seen, did, goal.gather(1, did[:, None])[:, 0]).backward()
        opt.step()
    last = {**kept(policy), **{f"value.{k}": v for k, v in kept(value).items()}}
    return [last, old, old]


# An asynchronous parameter server: a worker's gradient is of the weights that it last fetched.
def server(rank, seed):
    model = mlp(seed, 8, 16, 4)
    if rank == 0:
        opt = torch.optim.Adagrad(model.parameters(), lr=0.05, eps=1e-2)
        for turn in range(6):
            worker = turn % 2 + 1
            for p in model.parameters():
                p.grad = torch.empty_like(p)
                dist.recv(p.grad, worker)
            opt.step()
            for p in model.parameters():
                dist.send(p.data, worker)
        return kept(model)
    for step in range(3):
        model.zero_grad()
        x, y = batch(seed, 3 * step + rank)
        F.mse_loss(model(x), y).backward()
        for p in model.parameters():
            dist.send(p.grad, 0)
        for p in model.parameters():
            dist.recv(p.data, 0)
    return kept(model)


def server_whole(seed):
    master, worker = mlp(seed, 8, 16, 4), [mlp(seed, 8, 16, 4) for _ in range(2)]
    opt = torch.optim.Adagrad(master.parameters(), lr=0.05, eps=1e-2)
    for turn in range(6):
        w = worker[turn % 2]
        for p, g in zip(master.parameters(), grads_of(w, *batch(seed, 3 * (turn // 2) + turn % 2 + 1))):
            p.grad = g
        opt.step()
        w.load_state_dict(master.state_dict())
    return [kept(m) for m in (master, *worker)]


# Mean teacher (arXiv 1703.01780): the weights of the student on rank 1 go to the average on rank 0, and
# targets come back.
def teacher(rank, seed):
    model = mlp(seed, 8, 16, 4)
    opt = torch.optim.SGD(model.parameters(), lr=0.3)
    for step in range(3):
        x, y = batch(seed, step)
        target = torch.empty(4, 4)
        if rank == 0:
            with torch.no_grad():
                target = model(x + 0.1 * y.repeat(1, 2)).softmax(-1)
        dist.broadcast(target, 0)
        if rank:
            opt.zero_grad()
            logits = model(x)
            loss = F.kl_div(logits.log_softmax(-1), target, reduction="batchmean") + F.mse_loss(logits, y)
            loss.backward()
            opt.step()
        for p in model.parameters():
            news = p.detach().clone()
            dist.broadcast(news, 1)
            if rank == 0:
                p.data.mul_(0.9).add_(news, alpha=0.1)
    return kept(model)


def teacher_whole(seed):
    old, new = mlp(seed, 8, 16, 4), mlp(seed, 8, 16, 4)
    for step in range(3):
        x, y = batch(seed, step)
        target = old(x + 0.1 * y.repeat(1, 2)).softmax(-1).detach()
        logits = new(x)
        loss = F.kl_div(logits.log_softmax(-1), target, reduction="batchmean") + F.mse_loss(logits, y)
        descend(new.parameters(), torch.autograd.grad(loss, list(new.parameters())), 0.3)
        put([old], [0.9 * a + 0.1 * b for a, b in zip(old.parameters(), new.parameters())])
    return [kept(old), kept(new)]


# DDP where rank 0 alone evaluates, averages weights (SWA) and gathers what the other adds to a checkpoint.
def evaluate(rank, seed):
    model = DDP(mlp(seed, 8, 16, 4))
    opt = torch.optim.AdamW(model.parameters(), lr=1e-2, eps=1e-3)
    swa = torch.optim.swa_utils.AveragedModel(model.module) if rank == 0 else None
    best = torch.zeros(())
    for step in range(3):
        x, y = batch(seed, 2 * step + rank)
        fit(model, opt, x, y)
        if rank == 0:
            swa.update_parameters(model.module)
            with torch.no_grad():
                best = F.mse_loss(swa(batch(seed, 77, 8)[0]), batch(seed, 77, 8)[1])
        dist.broadcast(best, 0)
        state = torch.tensor([x.sum().item(), float(step)])
        dist.gather(state, [torch.empty(2) for _ in range(2)] if rank == 0 else None, 0)
    more = {"swa." + k: v for k, v in kept(swa.module).items()} if swa else {}
    return kept(model.module, best=best, **more)


def evaluate_whole(seed):
    model = mlp(seed, 8, 16, 4)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-2, eps=1e-3)
    past = []
    for step in range(3):
        fit(model, opt, *(torch.cat(t) for t in zip(batch(seed, 2 * step), batch(seed, 2 * step + 1))))
        past.append(kept(model))
    swa = mlp(seed, 8, 16, 4)
    swa.load_state_dict({k: torch.stack([p[k] for p in past]).mean(0) for k in past[0]})
    best = F.mse_loss(swa(batch(seed, 77, 8)[0]), batch(seed, 77, 8)[1])
    first = kept(model, best=best, **{"swa." + k: v for k, v in kept(swa).items()})
    return [first, kept(model, best=best)]


class Tasks(nn.Module):
    """An encoder and a head."""

    def __init__(self, seed, head, out):
        super().__init__()
        self.encoder = mlp(seed, 8, 16, 8)
        self.head = mlp(head, 8, out)


# A data set and a head to each rank, over an encoder that is shared; the heads have rates of their own.
def heads(rank, seed):
    model = Tasks(seed, seed + rank, 2 + rank)
    opt = torch.optim.SGD([{"params": model.encoder.parameters()},
                           {"params": model.head.parameters(), "lr": 0.3 / (rank + 1)}], lr=0.1)
    for step in range(2):
        x, y = batch(seed, 3 * step + rank, 4 + rank, 8, 2 + rank)
        opt.zero_grad()
        F.smooth_l1_loss(model.head(torch.tanh(model.encoder(x))), y).backward()
        mean_grads(model.encoder)
        opt.step()
    return kept(model)


def heads_whole(seed):
    models = [Tasks(seed, seed + r, 2 + r) for r in range(3)]
    for m in models:
        m.encoder = models[0].encoder
    for step in range(2):
        loss = 0
        for r, m in enumerate(models):
            x, y = batch(seed, 3 * step + r, 4 + r, 8, 2 + r)
            loss = loss + F.smooth_l1_loss(m.head(torch.tanh(m.encoder(x))), y)
        every = [list(models[0].encoder.parameters())] + [list(m.head.parameters()) for m in models]
        grads = iter(torch.autograd.grad(loss, sum(every, [])))
        for params, lr in zip(every, [0.1 / 3, 0.3, 0.15, 0.1]):
            descend(params, grads, lr)
    return [kept(m) for m in models]


# One model, a task to each rank: their losses weigh 0.8 and 0.2, so that gradients are summed.
def weighted(rank, seed):
    model = mlp(seed, 8, 16, 4)
    opt = torch.optim.Adam(model.parameters(), lr=1e-2, eps=1e-2)
    for step in range(2):
        x, y = batch(seed, step, 6)
        opt.zero_grad()
        loss = F.mse_loss(model(x)[:, :2], y[:, :2]) if rank == 0 else F.l1_loss(model(x)[:, 2:], y[:, 2:])
        (loss * (0.2 if rank else 0.8)).backward()
        for p in model.parameters():
            dist.all_reduce(p.grad)
        opt.step()
    return kept(model)


def weighted_whole(seed):
    model = mlp(seed, 8, 16, 4)
    opt = torch.optim.Adam(model.parameters(), lr=1e-2, eps=1e-2)
    for step in range(2):
        x, y = batch(seed, step, 6)
        z = model(x)
        opt.zero_grad()
        (0.8 * F.mse_loss(z[:, :2], y[:, :2]) + 0.2 * F.l1_loss(z[:, 2:], y[:, 2:])).backward()
        opt.step()
    return kept(model)


# Population-based training (arXiv 1711.09846): other rates; the worst takes the best's weights, once.
def population(rank, seed):
    model = mlp(seed + rank, 8, 16, 4)
    opt = torch.optim.SGD(model.parameters(), lr=0.05 * (rank + 1))
    for step in range(4):
        loss = fit(model, opt, *batch(seed, 3 * step + rank))
        if step == 1:
            losses = [torch.zeros(()) for _ in range(3)]
            dist.all_gather(losses, loss)
            best, worst = int(torch.stack(losses).argmin()), int(torch.stack(losses).argmax())
            for p in model.parameters():
                news = p.detach().clone()
                dist.broadcast(news, best)
                if rank == worst:
                    p.data.copy_(news)
            if rank == worst:
                opt.param_groups[0]["lr"] = 0.05 * (best + 1) * 1.2
    return kept(model)


def population_whole(seed):
    models = [mlp(seed + r, 8, 16, 4) for r in range(3)]
    rates = [0.05, 0.1, 0.15]
    for step in range(4):
        losses = []
        for r, m in enumerate(models):
            x, y = batch(seed, 3 * step + r)
            losses.append(F.mse_loss(m(x), y).item())
            descend(m.parameters(), grads_of(m, x, y), rates[r])
        if step == 1:
            best, worst = losses.index(min(losses)), losses.index(max(losses))
            models[worst] = copy.deepcopy(models[best])
            rates[worst] = rates[best] * 1.2
    return [kept(m) for m in models]


# A sweep over seeds and decays: nothing is shared but the mean loss for the log and a vote to stop.
def sweep(rank, seed):
    model = mlp(seed + rank, 8, 16, 4)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-2, eps=1e-3, weight_decay=0.1 * rank)
    logged = []
    for step in range(5):
        loss = fit(model, opt, *batch(seed, step))
        mean = loss.clone()
        mean_([mean])
        logged.append(mean.item())
        stop = torch.tensor(int(step >= 2 and rank > 0))
        dist.all_reduce(stop)
        if stop > 2:
            break
    return kept(model, logged=torch.tensor(logged))


def sweep_whole(seed):
    models, logged = [mlp(seed + r, 8, 16, 4) for r in range(4)], torch.zeros(3)
    for r, m in enumerate(models):
        opt = torch.optim.AdamW(m.parameters(), lr=1e-2, eps=1e-3, weight_decay=0.1 * r)
        for step in range(3):
            logged[step] += fit(m, opt, *batch(seed, step)) / 4
    return [kept(m, logged=logged) for m in models]


def noised(x, g):
    t = torch.rand(len(x), 1, generator=g)
    e = torch.randn(x.shape, generator=g)
    return torch.cat([(1 - t).sqrt() * x + t.sqrt() * e, t], 1), e


# Diffusion under DDP: time and noise are of the rank's seed; rank 0 keeps an exponential average.
def diffusion(rank, seed):
    model = DDP(mlp(seed, 9, 16, 8))
    ema = copy.deepcopy(model.module).requires_grad_(False)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-2, eps=1e-3)
    g = torch.Generator().manual_seed(seed + rank)
    for step in range(3):
        fit(model, opt, *noised(batch(seed, 2 * step + rank)[0], g))
        if rank == 0:
            for a, p in zip(ema.parameters(), model.parameters()):
                a.lerp_(p.detach(), 0.1)
    return kept(model.module, **({"ema." + k: v for k, v in kept(ema).items()} if rank == 0 else {}))


def diffusion_whole(seed):
    model, ema = mlp(seed, 9, 16, 8), mlp(seed, 9, 16, 8)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-2, eps=1e-3)
    gs = [torch.Generator().manual_seed(seed + r) for r in range(2)]
    for step in range(3):
        fit(model, opt, *(torch.cat(t) for t in zip(*(noised(batch(seed, 2 * step + r)[0], gs[r])
                                                      for r in range(2)))))
        put([ema], [0.9 * a + 0.1 * p for a, p in zip(ema.parameters(), model.parameters())])
    return kept(model, **{"ema." + k: v for k, v in kept(ema).items()})


class Prompted(nn.Module):
    """A frozen encoder behind a prompt that learns."""

    def __init__(self, seed):
        super().__init__()
        torch.manual_seed(seed)
        self.body = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True).requires_grad_(False)
        self.prompt = nn.Parameter(0.1 * torch.randn(3, 8))
        self.head = nn.Linear(8, 4)

    def forward(self, x, noise):
        prompt = self.prompt + 0.1 * noise
        return self.head(self.body(torch.cat([prompt, x.unflatten(1, (-1, 8))], 1)).mean(1))


# Prompt tuning of a frozen model with mixup: noise and mix are each rank's own.
def prompt(rank, seed):
    model = DDP(Prompted(seed))
    opt = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-2, eps=1e-3)
    for step in range(2):
        loss = mixed_loss(model, seed, step, rank)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return kept(model.module)


def mixed_loss(model, seed, step, rank):
    g = torch.Generator().manual_seed(100 * seed + 10 * step + rank)
    x, y = batch(seed, 2 * step + rank, 4, 16)
    part, other = torch.rand((), generator=g), torch.randperm(4, generator=g)
    z = model(part * x + (1 - part) * x[other], torch.randn(4, 3, 8, generator=g))
    return F.mse_loss(z, part * y + (1 - part) * y[other])


def prompt_whole(seed):
    model = Prompted(seed)
    opt = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-2, eps=1e-3)
    for step in range(2):
        loss = sum(mixed_loss(model, seed, step, r) for r in range(2)) / 2
        opt.zero_grad()
        loss.backward()
        opt.step()
    return kept(model)


# MoCo (arXiv 1911.05722), data parallel: keys of all ranks enter the queue of each; no gradient crosses.
def moco(rank, seed):
    query = DDP(mlp(seed, 8, 16, 8))
    key = copy.deepcopy(query.module).requires_grad_(False)
    queue = F.normalize(batch(seed, 99, 8)[0], dim=1)
    opt = torch.optim.SGD(query.parameters(), lr=0.3)
    for step in range(3):
        x, y = batch(seed, 2 * step + rank, 4, 8, 8)
        for a, p in zip(key.parameters(), query.parameters()):
            a.mul_(0.9).add_(p.detach(), alpha=0.1)
        k = F.normalize(key(x + 0.1 * y), dim=1)
        opt.zero_grad()
        contrast(F.normalize(query(x), dim=1), k, queue).backward()
        opt.step()
        keys = [torch.empty_like(k) for _ in range(2)]
        dist.all_gather(keys, k)
        queue = torch.cat([queue, *keys])[-12:]
    return kept(query.module, queue=queue)


def contrast(q, k, queue):
    logits = torch.cat([(q * k).sum(1, keepdim=True), q @ queue.t()], 1) / 0.2
    return F.cross_entropy(logits, torch.zeros(len(q), dtype=torch.long))


def moco_whole(seed):
    query, key = mlp(seed, 8, 16, 8), mlp(seed, 8, 16, 8)
    queue = F.normalize(batch(seed, 99, 8)[0], dim=1)
    for step in range(3):
        x, y = (torch.cat(t) for t in zip(*(batch(seed, 2 * step + r, 4, 8, 8) for r in range(2))))
        put([key], [0.9 * a + 0.1 * p for a, p in zip(key.parameters(), query.parameters())])
        k = F.normalize(key(x + 0.1 * y), dim=1).detach()
        loss = contrast(F.normalize(query(x), dim=1), k, queue)
        descend(query.parameters(), torch.autograd.grad(loss, list(query.parameters())), 0.3)
        queue = torch.cat([queue, k])[-12:]
    return kept(query, queue=queue)


class Stage(nn.Module):
    """All stages begin with the same weights, as each process has seeded alike; biases and norms as usual."""

    def __init__(self, seed):
        super().__init__()
        torch.manual_seed(seed)
        self.norm, self.up, self.down = nn.LayerNorm(8), nn.Linear(8, 16), nn.Linear(16, 8)
        nn.init.zeros_(self.up.bias)
        nn.init.zeros_(self.down.bias)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


def tuned(stage, rank):
    """The first stage is frozen, of the second all but the norm; a rate to each."""
    stage.requires_grad_(rank == 2)
    stage.norm.requires_grad_(rank > 0)
    params = [p for p in stage.parameters() if p.requires_grad]
    return torch.optim.SGD(params, lr=0.3 * rank, momentum=0.9) if params else None


# Fine-tuning of a pipeline, where each stage clips its own gradients; micro-batches are of 4, 3 and 1.
def frozen(rank, seed):
    stage = Stage(seed)
    opt = tuned(stage, rank)
    for step in range(3):
        flying = []
        for x, y in zip(*(t.split([4, 3, 1]) for t in batch(seed, step, 8, 8, 8))):
            if rank:
                x = torch.empty_like(x)
                dist.recv(x, rank - 1)
                x.requires_grad_(rank > 1)
            z = stage(x)
            if rank < 2:
                dist.send(z.detach(), rank + 1)
            flying.append((x, z, y))
        if opt:
            opt.zero_grad()
            for x, z, y in flying:
                if rank == 2:
                    (F.mse_loss(z, y) * len(x) / 8).backward()
                    dist.send(x.grad, 1)
                else:
                    g = torch.empty_like(z)
                    dist.recv(g, 2)
                    z.backward(g)
            nn.utils.clip_grad_norm_(stage.parameters(), 0.1 * rank)
            opt.step()
    return kept(stage)


def frozen_whole(seed):
    stages = [Stage(seed) for _ in range(3)]
    opts = [tuned(s, r) for r, s in enumerate(stages)]
    for step in range(3):
        x, y = batch(seed, step, 8, 8, 8)
        for s, o in zip(stages, opts):
            s.zero_grad()
            x = s(x)
        F.mse_loss(x, y).backward()
        for r in 1, 2:
            nn.utils.clip_grad_norm_(stages[r].parameters(), 0.1 * r)
            opts[r].step()
    return [kept(s) for s in stages]


class Lamb(torch.optim.Optimizer):
    """LAMB (arXiv 1904.00962): a layer's step by the norm of its weights."""

    def __init__(self, params, lr=0.02):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self):
        for p in self.param_groups[0]["params"]:
            s = self.state[p]
            if not s:
                s.update(m=torch.zeros_like(p), v=torch.zeros_like(p))
            s["m"].lerp_(p.grad, 0.1)
            s["v"].lerp_(p.grad ** 2, 0.01)
            u = s["m"] / (s["v"].sqrt() + 1e-2)
            p -= self.param_groups[0]["lr"] * u * (p.norm() / u.norm() if p.norm() > 0 else 1)


# Greedy layers (arXiv 1901.08164): each stage has a loss of its own, and no gradient goes back; LAMB's rates.
def greedy(rank, seed):
    stage, head = Stage(seed), mlp(seed, 8, 4)
    opt = Lamb([*stage.parameters(), *head.parameters()])
    for step in range(2):
        x, y = batch(seed, step, 6)
        if rank:
            dist.recv(x, rank - 1)
        z = stage(x)
        if rank < 2:
            dist.send(z.detach(), rank + 1)
        opt.zero_grad()
        F.mse_loss(head(z), y).backward()
        opt.step()
    return kept(stage, **{"head." + k: v for k, v in kept(head).items()})


def greedy_whole(seed):
    stages, heads = [Stage(seed) for _ in range(3)], [mlp(seed, 8, 4) for _ in range(3)]
    opts = [Lamb([*s.parameters(), *h.parameters()]) for s, h in zip(stages, heads)]
    for step in range(2):
        x, y = batch(seed, step, 6)
        for s, h in zip(stages, heads):
            params = [*s.parameters(), *h.parameters()]
            x = s(x.detach())
            for p, g in zip(params, torch.autograd.grad(F.mse_loss(h(x), y), params)):
                p.grad = g
        for o in opts:
            o.step()
    return [kept(s, **{"head." + k: v for k, v in kept(h).items()}) for s, h in zip(stages, heads)]


NAMES = {"gan": 2, "actor": 3, "server": 3, "teacher": 2, "evaluate": 2, "heads": 3, "weighted": 2,
         "population": 3, "sweep": 4, "diffusion": 2, "prompt": 2, "moco": 2,
         "frozen": 3, "greedy": 3}
PROGRAMS = {n: (r, right(globals()[n])) for n, r in NAMES.items()}
WHOLE = {n: globals()[n + "_whole"] for n in NAMES}
TOO = {}
