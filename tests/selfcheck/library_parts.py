"""Programs made of PyTorch's own parts for many ranks, as users put them together: DistributedDataParallel,
ZeroRedundancyOptimizer, PeriodicModelAverager, torch.distributed.nn.functional, AveragedModel, checkpoints; what the
library has no part for (tensor parallel, pipelines, experts) by hand around them; and what is reported to go wrong.

Each train(rank, fault, seed, n) is a user's program; with n = 1 it is what one process does that has the whole
batch and model, without collectives.
"""
import contextlib
import copy

import torch
import torch.distributed as dist
import torch.distributed.nn.functional as dist_nn
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.nn.utils import weight_norm
from torch.optim.swa_utils import AveragedModel
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

D = 8
EPS = 1e-3   # what is 0 but for rounding, as a bias of keys has it, is not blown up


def normal(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def integers(seed, high, *shape):
    return torch.randint(high, shape, generator=torch.Generator().manual_seed(seed))


def result(model, **more):
    """What a program is checked by: weights and their last gradients."""
    out = {name: p.data for name, p in model.named_parameters()}
    out.update({f"grad.{name}": p.grad for name, p in model.named_parameters() if p.grad is not None})
    return {**out, **more}


def grid(rank, inner):
    """Groups of a grid of ranks: of those next to each other, and of those inner apart."""
    world = dist.get_world_size()
    rows = [list(range(i, i + inner)) for i in range(0, world, inner)]
    columns = [list(range(i, world, inner)) for i in range(inner)]
    return [next(g for g, r in [(dist.new_group(r), r) for r in lists] if rank in r) for lists in (rows, columns)]


# --- clip: two towers, a contrastive loss over the pairs of all ranks -----------------------------------------

class Clip(nn.Module):
    def __init__(self):
        super().__init__()
        self.image = nn.Sequential(nn.Conv1d(2, 4, 3, padding=1), nn.GELU(), nn.Flatten(), nn.Linear(4 * D, D))
        self.text = nn.GRU(D, D, batch_first=True)
        self.project = weight_norm(nn.Linear(D, D, bias=False))

    def forward(self, image, text):
        words, _ = self.text(text)
        return F.normalize(self.image(image), dim=-1), F.normalize(self.project(words[:, -1]), dim=-1)


def gather_features(features, rank, n):
    """Of all ranks; the rank's own ones with their graph."""
    if n == 1:
        return features
    everyone = [torch.zeros_like(features) for _ in range(n)]
    dist.all_gather(everyone, features.detach())
    everyone[rank] = features
    return torch.cat(everyone)


def train_clip(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = Clip()
    net = DDP(model, gradient_as_bucket_view=True) if n > 1 else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9, nesterov=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=6)
    scaler = torch.cuda.amp.GradScaler(enabled=False)
    for step in range(2):
        images, texts = normal(100 * seed + step, 8, 2, D), normal(100 * seed + step + 50, 8, 3, D)
        features = net(images.chunk(n)[rank], texts.chunk(n)[rank])
        image, text = (gather_features(f, rank, n) for f in features)
        logits = image @ text.t() / 0.2
        pairs = torch.arange(8)
        loss = (F.cross_entropy(logits, pairs) + F.cross_entropy(logits.t(), pairs)) / 2
        if fault != "world":
            loss = loss * n   # each rank has the gradient of its own features only, and DDP averages
        optimizer.zero_grad(set_to_none=False)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        schedule.step()
    return result(model)


# --- tagger: an LSTM with a head for each task, a task for each micro batch -----------------------------------

class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(20, D)
        self.lstm = nn.LSTM(D, D, bidirectional=True, batch_first=True)
        self.heads = nn.ModuleDict({"pos": nn.Linear(2 * D, 6), "ner": nn.Linear(2 * D, 4)})

    def forward(self, tokens, task):
        return self.heads[task](self.lstm(self.words(tokens))[0])


def train_tagger(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = Tagger()
    net = DDP(model, find_unused_parameters=True) if n > 1 else model
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
    for step in range(2):
        micro_batches = []
        for i, (task, tags) in enumerate((("pos", 6), ("ner", 4))):
            s = 100 * seed + 10 * step + i
            labels = integers(s + 50, tags, 4, 6)
            lengths = torch.tensor([6, 5, 3, 1])   # rank 0 has the long sentences
            labels[torch.arange(6) >= lengths[:, None]] = -100
            micro_batches.append((task, integers(s, 20, 4, 6).chunk(n)[rank], labels.chunk(n)[rank]))
        count = sum((labels != -100).sum() for _, _, labels in micro_batches)
        if n > 1:
            dist.all_reduce(count)
        optimizer.zero_grad()
        for i, (task, tokens, labels) in enumerate(micro_batches):
            # A head is not in the last graph; it has to be reduced after its own.
            later = n > 1 and fault == "nosync" and i < 1
            with net.no_sync() if later else contextlib.nullcontext():
                logits = net(tokens, task)
                loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
                (loss * n / count).backward()
        optimizer.step()
    return result(model)


# --- packed: a transformer, its state sharded; learning rates by the share of the data that is used up ---------

class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(D, D)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(D, 2, 2 * D, dropout=0.0, batch_first=True,
                                                               norm_first=True) for _ in range(2))
        self.head = nn.Linear(D, 3)

    def forward(self, x):
        x = self.stem(x)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False)
        return self.head(x.mean(1))


def train_packed(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = Classifier()
    net = DDP(model, static_graph=True) if n > 1 else model
    if n > 1:
        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=0.01, eps=EPS)
    else:
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, eps=EPS)
    used = torch.zeros(())
    for step in range(3):
        x, y = normal(100 * seed + step, 4, 5, D), integers(100 * seed + step + 50, 3, 4)
        # How many conversations were packed into the rows.
        packed = 1.0 + torch.arange(4.0) + step
        used = used + packed.chunk(n)[rank].mean()
        progress = used / 40
        if n > 1 and fault != "progress":
            dist.all_reduce(progress)
            progress /= n
        for group in optimizer.param_groups:
            group["lr"] = 0.01 * (1 - progress.item())
        optimizer.zero_grad()
        F.cross_entropy(net(x.chunk(n)[rank]), y.chunk(n)[rank], label_smoothing=0.1).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
    return result(model)


# --- vq: a quantizing autoencoder whose codes are moving averages, and a moving average of it all --------------

class Codebook(nn.Module):
    def __init__(self, codes, fault, n):
        super().__init__()
        self.fault, self.n = fault, n
        self.register_buffer("codes", torch.randn(codes, D))
        self.register_buffer("counts", torch.ones(codes))
        self.register_buffer("sums", self.codes.clone())

    def forward(self, z):
        nearest = torch.cdist(z.detach(), self.codes).argmin(-1)
        quantized = self.codes[nearest]
        if self.training:
            chosen = F.one_hot(nearest, len(self.codes)).float()
            counts, sums = chosen.sum(0), chosen.t() @ z.detach()
            if self.n > 1 and self.fault != "codes":
                dist.all_reduce(counts)
                dist.all_reduce(sums)
            self.counts.mul_(0.8).add_(counts, alpha=0.2)
            self.sums.mul_(0.8).add_(sums, alpha=0.2)
            self.codes.copy_(self.sums / (self.counts[:, None] + 1e-3))
        return z + (quantized - z).detach(), F.mse_loss(z, quantized)


class Autoencoder(nn.Module):
    def __init__(self, fault, n):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(2 * D, 2 * D), nn.ELU(), nn.Linear(2 * D, D))
        self.codebook = Codebook(6, fault, n)
        self.decoder = nn.Sequential(nn.Linear(D, 2 * D), nn.ELU(), nn.Linear(2 * D, 2 * D))

    def forward(self, x):
        z, commit = self.codebook(self.encoder(x))
        return self.decoder(z), commit


def train_vq(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = Autoencoder(fault, n)
    net = DDP(model, broadcast_buffers=False) if n > 1 else model
    average = AveragedModel(model, avg_fn=lambda old, new, count: 0.9 * old + 0.1 * new)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=0.01)
    # The loader deals the samples to the ranks in turn.
    data = TensorDataset(normal(100 * seed, 24, 2 * D))
    sampler = DistributedSampler(data, n, rank, shuffle=False)
    for step, (x,) in enumerate(DataLoader(data, batch_size=8 // n, sampler=sampler)):
        optimizer.zero_grad()
        y, commit = net(x)
        (F.mse_loss(y, x) + 0.25 * commit).backward()
        optimizer.step()
        average.update_parameters(model)
    more = {f"average.{name}": p.data for name, p in average.module.named_parameters()}
    return result(model, **more, codes=model.codebook.codes)


# --- periodic: local SGD, replicas averaged at times ----------------------------------------------------------

def mixer():
    return nn.Sequential(nn.Conv1d(4, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.ReLU(), nn.AdaptiveAvgPool1d(4),
                         nn.Flatten(), nn.Linear(32, 3))


def local_sgd(model):
    decay = [p for p in model.parameters() if p.ndim > 1]
    rest = [p for p in model.parameters() if p.ndim <= 1]
    return torch.optim.SGD([{"params": decay, "weight_decay": 0.1}, {"params": rest}], lr=0.1, momentum=0.9)


def local_step(model, optimizer, seed, step, rank):
    s = 1000 * seed + 10 * step + rank
    optimizer.zero_grad()
    F.cross_entropy(model(normal(s, 4, 4, 10)), integers(s + 500, 3, 4)).backward()
    optimizer.step()


def train_periodic(rank, fault, seed):
    torch.manual_seed(seed)
    model = mixer()
    optimizer = local_sgd(model)
    averager = PeriodicModelAverager(period=2, warmup_steps=0)
    for step in range(3):
        local_step(model, optimizer, seed, step, rank)
        groups = [group["params"] for group in optimizer.param_groups]
        for params in groups if fault == "counter" else [sum(groups, [])]:
            averager.average_parameters(iter(params))
    return {name: p.data for name, p in model.named_parameters()}


def whole_periodic(seed):
    torch.manual_seed(seed)
    models = [mixer()]
    models.append(copy.deepcopy(models[0]))
    optimizers = [local_sgd(m) for m in models]
    for step in range(3):
        for rank, (model, optimizer) in enumerate(zip(models, optimizers)):
            local_step(model, optimizer, seed, step, rank)
        if step % 2 == 0:
            with torch.no_grad():
                for a, b in zip(*(m.parameters() for m in models)):
                    a.copy_((a + b) / 2)
                    b.copy_(a)
    return {name: p.data for name, p in models[0].named_parameters()}


# --- lora: adapters of a tensor parallel MLP, replicas of it in DistributedDataParallel -----------------------

class LoraMlp(nn.Module):
    """Of the hidden units each rank has a part: of the frozen weights, and of what is learnt for them."""
    def __init__(self, part, parts, group):
        super().__init__()
        self.parts, self.group = parts, group
        self.inward, self.norm, self.last_norm = nn.Linear(D, D), nn.LayerNorm(D), nn.LayerNorm(D)
        up, down = torch.randn(4 * D, D) * 0.3, torch.randn(D, 4 * D) * 0.3
        self.register_buffer("up", up.chunk(parts)[part])
        self.register_buffer("down", down.chunk(parts, 1)[part])
        self.lora_a = nn.Parameter(torch.randn(2, D) * 0.3)
        self.lora_b = nn.Parameter((torch.randn(4 * D, 2) * 0.3).chunk(parts)[part].clone())
        self.head = nn.Linear(D, 5)

    def forward(self, x):
        x = self.inward(x)
        h = self.norm(x)
        h = F.gelu(F.linear(h, self.up) + F.linear(F.linear(h, self.lora_a), self.lora_b))
        h = F.linear(h, self.down)
        if self.parts > 1:
            h = dist_nn.all_reduce(h, group=self.group)
        return self.head(self.last_norm(x + h))


def train_lora(rank, fault, seed, n=2):
    tp, dp = grid(rank, 2) if n > 1 else (None, None)
    torch.manual_seed(seed)
    model = LoraMlp(rank % n, n, tp)
    net = DDP(model, process_group=dp, broadcast_buffers=False) if n > 1 else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.3, total_steps=10, cycle_momentum=False)
    for step in range(2):
        x, y = normal(100 * seed + step, 4, 3, D), integers(100 * seed + step + 50, 5, 4, 3)
        if n > 1:
            x, y = x.chunk(2)[rank // n], y.chunk(2)[rank // n]
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x).flatten(0, 1), y.flatten())
        if fault != "tploss":
            loss = loss / n   # what is differentiated is the sum of what the ranks have
        loss.backward()
        for name, p in model.named_parameters():
            if n > 1 and name != "lora_b" and not (fault == "adapter" and name == "lora_a"):
                dist.all_reduce(p.grad, group=tp)
                if fault == "normmean" and "norm" in name:
                    p.grad /= n
        optimizer.step()
        schedule.step()
    return result(model)


# --- context: each rank has a part of the sequence; gradients are averaged by hooks ----------------------------

class Encoder(nn.Module):
    def __init__(self, rank, n):
        super().__init__()
        self.rank, self.n = rank, n
        self.position = nn.Parameter(torch.randn(8, 1, D) * 0.3)
        self.norm1, self.norm2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.attention = nn.MultiheadAttention(D, 2)
        self.mlp = nn.Sequential(nn.Linear(D, 2 * D), nn.SiLU(), nn.Linear(2 * D, D))
        self.head = nn.Linear(D, 6)

    def forward(self, x):
        x = x + self.position.chunk(self.n)[self.rank]
        mine = whole = self.norm1(x)
        if self.n > 1:
            whole = torch.cat(dist_nn.all_gather(mine))
        hidden = torch.ones(8, 8).triu(1).bool().chunk(self.n)[self.rank]
        x = x + self.attention(mine, whole, whole, attn_mask=hidden, need_weights=False)[0]
        return self.head(x + self.mlp(self.norm2(x)))


def train_context(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = Encoder(rank, n)

    def averaged(grad):
        grad = grad.contiguous().clone()
        dist.all_reduce(grad)
        return grad / n

    for name, p in model.named_parameters():
        if n > 1 and not (fault == "hooks" and name.startswith("norm2")):
            p.register_hook(averaged)
    optimizer = torch.optim.NAdam(model.parameters(), lr=0.02, eps=EPS)
    for step in range(2):
        x, y = normal(100 * seed + step, 8, 2, D), integers(100 * seed + step + 50, 6, 8, 2)
        mask = torch.ones(8, 2)
        mask[:3] = 0   # the prompt
        x, y, mask = (t.chunk(n)[rank] for t in (x, y, mask))
        losses = F.cross_entropy(model(x).flatten(0, 1), y.flatten(), reduction="none")
        valid = mask.sum()
        if n > 1 and fault != "valid":
            dist.all_reduce(valid)
            valid /= n   # as gradients are averaged
        optimizer.zero_grad()
        ((losses * mask.flatten()).sum() / valid).backward()
        optimizer.step()
    return result(model)


# --- pipe: a language model of two stages with one embedding, two micro batches, clipped by the whole norm ------

VOCAB = 16


class Stage(nn.Module):
    def __init__(self, stage, seed):
        super().__init__()
        torch.manual_seed(10 * seed + stage)
        self.stage = stage
        self.embedding = nn.Embedding(VOCAB, D)
        nn.init.normal_(self.embedding.weight, std=0.4)
        self.add_module(f"block{stage}", nn.TransformerEncoderLayer(D, 2, 2 * D, dropout=0.0, batch_first=True))

    def forward(self, x):
        x = self.embedding(x) if self.stage == 0 else x
        x = getattr(self, f"block{self.stage}")(x, torch.ones(5, 5).triu(1).bool())
        return x if self.stage == 0 else F.linear(x, self.embedding.weight)


class Both(nn.Module):
    def __init__(self, seed):
        super().__init__()
        first, last = Stage(0, seed), Stage(1, seed)
        self.embedding, self.block0, self.block1 = first.embedding, first.block0, last.block1
        last.embedding = first.embedding
        self.run = [first, last]

    def forward(self, x):
        return self.run[1](self.run[0](x))


def clip_pipe(model, stage, n, limit=0.3):
    """The embedding counts once."""
    square = sum(p.grad.norm() ** 2 for name, p in model.named_parameters()
                 if stage == 0 or not name.startswith("embedding"))
    if n > 1:
        dist.all_reduce(square)
    for p in model.parameters():
        p.grad.mul_((limit / (square.sqrt() + 1e-6)).clamp(max=1.0))


def train_pipe(rank, fault, seed, n=2):
    model = Stage(rank, seed) if n > 1 else Both(seed)
    if n > 1 and fault != "start":
        dist.broadcast(model.embedding.weight.data, 0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    for step in range(2):
        tokens = integers(100 * seed + step, VOCAB, 4, 6)
        optimizer.zero_grad()
        for micro in tokens.chunk(2):
            if n > 1 and rank == 0:
                hidden = model(micro[:, :-1])
                dist.send(hidden.detach(), 1)
                grad = torch.empty_like(hidden)
                dist.recv(grad, 1)
                hidden.backward(grad)
                continue
            hidden = micro[:, :-1]
            if n > 1:
                hidden = torch.empty(2, 5, D)
                dist.recv(hidden, 0)
                hidden.requires_grad_()
            (F.cross_entropy(model(hidden).flatten(0, 1), micro[:, 1:].flatten()) / 2).backward()
            if n > 1:
                dist.send(hidden.grad, 0)
        if n > 1 and fault != "tied":
            dist.all_reduce(model.embedding.weight.grad)
        clip_pipe(model, rank, n)
        optimizer.step()
    return result(model)


# --- sharded: two pipelines of two stages; each rank updates its half of a flat buffer --------------------------

class Half(nn.Module):
    """A stage; where both are in one process, the embedding is the first one's."""
    def __init__(self, stage, embedding=None):
        super().__init__()
        weight = nn.Parameter(torch.randn(VOCAB, D) * 0.4)
        if stage == 0:
            self.table = weight   # the first of the buffer
        self.gru = nn.GRU(D, D, batch_first=True)
        self.norm = nn.LayerNorm(D)
        if stage == 1:
            self.table = embedding or weight   # the last of it
        self.stage = stage

    def forward(self, x):
        if self.stage == 0:
            x = F.embedding(x, self.table)
        x = x + self.gru(self.norm(x))[0]
        return F.linear(x, self.table) if self.stage == 1 else x


class FlatAdam:
    """Adam of a rank's part of the buffer that has all gradients; its peers have the others."""
    def __init__(self, params, group, part):
        self.params, self.group, self.part = list(params), group, part
        self.flat = nn.Parameter(self.mine(torch.cat([p.data.flatten() for p in self.params])).clone())
        self.adam = torch.optim.Adam([self.flat], lr=0.02)

    def mine(self, flat):
        return flat.chunk(2)[self.part]

    def reduce_scatter(self, grads):
        """The mean of the rank's part; of the others only what the rank itself has. gloo has none of its own."""
        mean = grads.clone()
        dist.all_reduce(mean, group=self.group)
        self.mine(grads).copy_(self.mine(mean) / 2)

    def step(self, grads):
        self.flat.grad = self.mine(grads).clone()
        self.adam.step()
        parts = [torch.empty_like(self.flat.data) for _ in range(2)]
        dist.all_gather(parts, self.flat.data, group=self.group)
        flat = torch.cat(parts)
        for p in self.params:
            p.data.copy_(flat[:p.numel()].view_as(p))
            flat = flat[p.numel():]


def sharded_batch(seed, step):
    tokens = integers(100 * seed + step, VOCAB, 4, 6)
    return tokens[:, :-1], tokens[:, 1:]


def train_sharded(rank, fault, seed):
    peers, line = grid(rank, 2)   # of a stage, and of a pipeline
    stage, replica = rank // 2, rank % 2
    torch.manual_seed(seed)
    halves = [Half(0), Half(1)]
    halves[1].table.data.copy_(halves[0].table.data)
    model = halves[stage]
    params = [p for _, p in sorted(model.named_parameters(), key=lambda item: (item[0] == "table") == (stage == 1))]
    optimizer = FlatAdam(params, peers, replica)
    for step in range(2):
        x, y = (t.chunk(2)[replica] for t in sharded_batch(seed, step))
        for p in params:
            p.grad = None
        if stage == 0:
            h = model(x)
            dist.send(h.detach(), rank + 2)
            grad = torch.empty_like(h)
            dist.recv(grad, rank + 2)
            h.backward(grad)
        else:
            h = torch.empty(2, 5, D)
            dist.recv(h, rank - 2)
            h.requires_grad_()
            F.cross_entropy(model(h).flatten(0, 1), y.flatten()).backward()
            dist.send(h.grad, rank - 2)
        grads = torch.cat([p.grad.flatten() for p in params])
        size = model.table.numel()
        table = grads[:size] if stage == 0 else grads[-size:]
        if fault == "early":
            optimizer.reduce_scatter(grads)
            dist.all_reduce(table, group=line)
        else:
            dist.all_reduce(table, group=line)
            optimizer.reduce_scatter(grads)
        optimizer.step(grads)
    return {f"{'table' if name == 'table' else f'{stage}.{name}'}": p.data for name, p in model.named_parameters()}


def whole_sharded(seed):
    torch.manual_seed(seed)
    first = Half(0)
    last = Half(1)
    last.table = first.table
    both = nn.Sequential(first, last)
    adam = torch.optim.Adam(both.parameters(), lr=0.02)
    for step in range(2):
        x, y = sharded_batch(seed, step)
        adam.zero_grad()
        F.cross_entropy(both(x).flatten(0, 1), y.flatten()).backward()
        adam.step()
    return {"table" if name == "0.table" else name: p.data for name, p in both.named_parameters()}


# --- moe: experts over pairs of ranks, two of each; the rest in DistributedDataParallel ------------------------

EXPERTS = 4


class AllToAll(torch.autograd.Function):
    """Chunks to the ranks of a group; gloo has no all_to_all of its own."""
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        out = [torch.empty_like(x) for _ in range(dist.get_world_size(group))]
        dist.all_gather(out, x.contiguous(), group=group)
        me = dist.get_rank(group)
        return torch.cat([t.chunk(len(out))[me] for t in out])

    @staticmethod
    def backward(ctx, grad):
        return AllToAll.apply(grad, ctx.group), None


class Experts(nn.Module):
    def __init__(self, part, parts, group):
        super().__init__()
        self.parts, self.group = parts, group
        self.up = nn.Parameter((torch.randn(EXPERTS, D, 2 * D) * 0.3).chunk(parts)[part].clone())
        self.down = nn.Parameter((torch.randn(EXPERTS, 2 * D, D) * 0.3).chunk(parts)[part].clone())

    def forward(self, x):   # experts, tokens, D
        if self.parts > 1:
            tokens = x.shape[1]
            x = AllToAll.apply(x, self.group)   # the rank's experts for each rank of the group
            x = torch.cat(x.chunk(self.parts), 1)
        x = F.silu(x @ self.up) @ self.down
        if self.parts > 1:
            x = AllToAll.apply(torch.cat(x.split(tokens, 1)), self.group)
        return x


class Moe(nn.Module):
    def __init__(self, part, parts, group):
        super().__init__()
        self.inward = nn.Linear(D, D)
        self.router = nn.Linear(D, EXPERTS, bias=False)
        self.register_buffer("balance", torch.zeros(EXPERTS))   # only for which are chosen
        self.register_buffer("load", torch.zeros(EXPERTS))
        self.experts = Experts(part, parts, group)
        self.norm, self.head = nn.LayerNorm(D), nn.Linear(D, 3)

    def forward(self, x):
        x = self.inward(x)
        scores = self.router(x).sigmoid()
        chosen = F.one_hot((scores.detach() + self.balance).argmax(-1), EXPERTS).float()
        self.load += chosen.sum(0)
        sent = torch.einsum("te,td->etd", chosen, x)
        x = x + torch.einsum("te,etd->td", chosen * scores, self.experts(sent))
        return self.head(self.norm(x)), scores, chosen


def train_moe(rank, fault, seed, n=4):
    ep, edp = grid(rank, 2) if n > 1 else (None, None)
    torch.manual_seed(seed)
    model = Moe(rank % 2 if n > 1 else 0, 2 if n > 1 else 1, ep)
    # What is whole is drawn from the same numbers on all ranks.
    torch.manual_seed(seed + (1 + rank % 2 if fault == "routerseed" else 1))
    nn.init.normal_(model.router.weight)
    experts = list(model.experts.parameters())
    net = model
    if n > 1:
        ignored = [f"experts.{name}" for name, _ in model.experts.named_parameters()]
        DDP._set_params_and_buffers_to_ignore_for_model(model, ignored + ["router.weight", "balance", "load"])
        net = DDP(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    for step in range(2):
        x, y = normal(100 * seed + step, 32, D), integers(100 * seed + step + 50, 3, 32)
        optimizer.zero_grad()
        logits, scores, chosen = net(x.chunk(n)[rank])
        share = chosen.sum(0)
        if n > 1:
            dist.all_reduce(share)
        # The share is of all tokens, the scores are the rank's own: their mean is taken with the gradients.
        aux = EXPERTS * (scores.sum(0) * share).sum() / 32 ** 2
        if fault != "aux":
            aux = aux * n
        (F.cross_entropy(logits, y.chunk(n)[rank]) + 0.5 * aux).backward()
        if n > 1:
            dist.all_reduce(model.router.weight.grad)
            model.router.weight.grad /= n
            for p in experts:
                # Tokens of all ranks come to an expert or its copy.
                if fault != "expertlocal":
                    dist.all_reduce(p.grad, group=dist.group.WORLD if fault == "expertworld" else edp)
                p.grad /= dist.get_world_size(edp) if fault == "expertmean" else n
        optimizer.step()
        if n > 1 and fault != "balance":
            dist.all_reduce(model.load)
        model.balance += 0.1 * (model.load.mean() - model.load).sign()
        model.load.zero_()
    return result(model, balance=model.balance)


# --- shared: all tokens go to all ranks, each applies its experts; the tokens' owners sum ------------------------

class Shared(nn.Module):
    def __init__(self, rank, n):
        super().__init__()
        self.rank, self.n = rank, n
        self.norm = nn.LayerNorm(D)
        self.gate = nn.Linear(D, EXPERTS, bias=False)
        self.up = nn.Parameter((torch.randn(EXPERTS, D, D) * 0.4).chunk(n)[rank].clone())
        self.head = nn.Linear(D, 4)

    def forward(self, x):
        h = self.norm(x)
        logits = self.gate(h)
        p = logits.softmax(-1)
        if self.n > 1:
            h = torch.cat(dist_nn.all_gather(h))
            p = torch.cat(dist_nn.all_gather(p))
        p = p.chunk(self.n, 1)[self.rank]
        y = torch.einsum("te,ted->td", p, torch.einsum("td,edf->tef", h, self.up).tanh())
        if self.n > 1:
            y = dist_nn.all_reduce(y).chunk(self.n)[self.rank]
        return self.head(x + y), logits.logsumexp(-1).square()


def train_shared(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = Shared(rank, n)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    for step in range(2):
        x, y = normal(100 * seed + step, 12, D), integers(100 * seed + step + 50, 4, 12)
        optimizer.zero_grad()
        logits, z_loss = model(x.chunk(n)[rank])
        # The mean of all tokens; what comes back to an expert is of all ranks already.
        loss = F.cross_entropy(logits, y.chunk(n)[rank], reduction="sum") + 0.1 * z_loss.sum()
        (loss / 12).backward()
        whole = [p for name, p in model.named_parameters()
                 if name != "up" and not (fault == "gatesync" and name == "gate.weight")]
        if n > 1:
            flat = torch.cat([p.grad.flatten() for p in whole])
            dist.all_reduce(flat)
            for p in whole:
                p.grad.copy_(flat[:p.numel()].view_as(p))
                flat = flat[p.numel():]
        optimizer.step()
        schedule.step()
    return result(model)


PROGRAMS = {"clip": (2, train_clip), "tagger": (2, train_tagger), "packed": (2, train_packed), "vq": (2, train_vq),
            "periodic": (2, train_periodic), "lora": (4, train_lora), "context": (2, train_context),
            "pipe": (2, train_pipe), "sharded": (4, train_sharded), "moe": (4, train_moe),
            "shared": (2, train_shared)}
WHOLE = {name: lambda seed, f=f: f(0, None, seed, 1) for name, (_, f) in PROGRAMS.items()}
WHOLE.update(periodic=whole_periodic, sharded=whole_sharded)
FAULTS = {
    # Features of other ranks carry no gradient, DDP averages what is the rank's own:
    # https://github.com/JohnGiorgi/DeCLUTR/pull/212
    "world": ("clip", r"all_reduce|all_gather|cross_entropy|Tensor\.(div\.1|add\.0)\.|cat\.[01]\.backward", "01"),
    # What the last micro batch does not use is not reduced: https://github.com/pytorch/pytorch/issues/69031
    "nosync": ("tagger", r"heads\.pos\.|linear\.0\.backward|all_reduce\.1[01]\.|adagrad", "01"),
    # The learning rate by the data that the rank itself used up: https://github.com/karpathy/nanochat/pull/857
    "progress": ("packed", r"adamw|Tensor\.div\.", "01"),
    # Counts and sums of a codebook are the rank's own: https://github.com/espnet/espnet/pull/6284
    "codes": ("vq", r"Tensor\.(sum\.0|matmul|mul_|add_\.[01]|div|copy_\.0)\.", "01"),
    # Averaging is called for each group of parameters, and counts steps: https://github.com/pytorch/pytorch/pull/74737
    "counter": ("periodic", r"sgd|all_reduce|Torch\.cat|div_", "01"),
    # The factor of an adapter that is whole on each rank: https://github.com/ISEEKYAN/Megatron-LM/pull/131
    "adapter": ("lora", r"lora_a|linear\.2\.backward|all_reduce\.2\.|sgd", "0123"),
    # Of norms the mean where it should be the sum: https://github.com/EleutherAI/gpt-neox/pull/1259
    "normmean": ("lora", r"all_reduce\.1[5-8]|div_|layer_norm\.\d\.backward|norm\.LayerNorm|sgd", "0123"),
    # The way back of torch.distributed.nn.all_reduce sums the same gradient of all ranks:
    # https://github.com/microsoft/ltp-megatron-lm/pull/68 https://github.com/pytorch/xla/issues/2989
    "tploss": ("lora", r"cross_entropy|all_reduce\.[1-9]", "0123"),
    # A check which weights are to be reduced does not know a norm: https://github.com/InternLM/InternEvo/pull/420
    "hooks": ("context", r"norm2\.|layer_norm\.1\.backward|nadam", "01"),
    # The number of valid tokens is that of the rank's part: https://github.com/NVIDIA/Megatron-LM/pull/7513
    "valid": ("context", r"Tensor\.(sum\.[01]|div\.0|mul\.1)\.", "01"),
    # Gradients of a tied embedding: https://github.com/uw-syfi/piper/issues/13
    "tied": ("pipe", r"embedding\.\d\.backward|Module\.embedding|linear\.[25]\.backward|sgd", "01"),
    # Its copies do not start from the same: https://github.com/uw-syfi/piper/pull/25
    "start": ("pipe", r"embedding|linear\.[25]\.|all_reduce\.0\.|sgd", "01"),
    # Its sum is taken when each rank has the mean of its own part only:
    # https://github.com/NVIDIA/Megatron-LM/issues/844
    "early": ("sharded", r"all_reduce|copy_\.[1-9]|adam\.|all_gather", "0123"),
    # What is whole on all ranks is drawn from the experts' own numbers:
    # https://github.com/NVIDIA-NeMo/Megatron-Bridge/pull/5396 https://github.com/NVIDIA/Megatron-LM/issues/599
    "routerseed": ("moe", r"linear\.1\.|router|sgd", "0123"),
    # Tokens of an expert are to be counted over all ranks: https://github.com/pytorch/torchtitan/pull/1114
    "balance": ("moe", r"Tensor\.(add_|sum\.0|mean|sub|sign)\.", "0123"),
    # Shares of all tokens and scores of the rank's: https://github.com/NVIDIA/Megatron-LM/pull/3769
    "aux": ("moe", r"Tensor\.(mul\.[3-6]|div\.0|sum\.[23]|add\.2)|all_reduce\.[07]\.|div_\.0|router|"
            r"linear\.1\.backward", "0123"),
    # Experts in the group of what all ranks have: https://github.com/NVIDIA/Megatron-LM/pull/1622
    "expertworld": ("moe", r"all_reduce\.[89]\.|div_\.[12]|experts|matmul\.[01]\.backward|sgd", "0123"),
    # Divided by the number of copies: https://github.com/deepspeedai/DeepSpeed/pull/6546
    "expertmean": ("moe", r"all_reduce\.[89]\.|div_\.[12]|experts|matmul\.[01]\.backward|sgd", "0123"),
    # Copies of experts are left out of all reductions: https://github.com/facebookresearch/fairseq/issues/4220
    "expertlocal": ("moe", r"div_\.[12]|experts|matmul\.[01]\.backward|sgd", "0123"),
    # The router's gradient is of the rank's tokens: https://github.com/pytorch/torchtitan/issues/2387
    "gatesync": ("shared", r"gate\.|linear\.0\.backward|adam\.", "01"),
}
