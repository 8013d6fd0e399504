"""Programs made of PyTorch's own parts for many ranks, as users put them together: DistributedDataParallel,
ZeroRedundancyOptimizer, PeriodicModelAverager, AveragedModel, checkpoints; and what is reported to go wrong.

Each train(rank, fault, seed, n) is a user's program; with n = 1 it is what one process does that has the whole
batch and model, without collectives.
"""
import contextlib
import copy

import torch
import torch.distributed as dist
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

from library_kit import D, EPS, integers, normal, result


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


PROGRAMS = {"clip": (2, train_clip), "tagger": (2, train_tagger), "packed": (2, train_packed), "vq": (2, train_vq),
            "periodic": (2, train_periodic)}
WHOLE = {name: lambda seed, f=f: f(0, None, seed, 1) for name, (_, f) in PROGRAMS.items()}
WHOLE.update(periodic=whole_periodic)
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
}
