"""Trainers whose ranks each have a part of the batch, in the style of Hugging Face and DeepSpeed among others,
with what trackers report: losses scaled for too few ranks, replicas that drift.

Each train(rank, fault, seed, n) is a user's program; with n = 1 it is what one process does that has the whole
batch and model.
"""
import contextlib

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from rebuilt_kit import VOCAB, choose, draw, kept


# --- sft: a trainer as Hugging Face's, DistributedDataParallel with accumulation and a loss per token -----------

class ConvLm(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, 12)
        self.conv = nn.Conv1d(12, 24, 3)
        self.norm, self.head = nn.GroupNorm(4, 24), nn.Linear(24, VOCAB)

    def forward(self, input_ids):
        h = self.conv(F.pad(self.embed(input_ids).transpose(1, 2), (2, 0)))
        return self.head(F.relu(self.norm(h)).transpose(1, 2))


def sft_batch(seed, step, rank, micro):
    ids = choose(1000 * seed + 100 * step + 10 * rank + micro, VOCAB, 2, 8)
    labels = ids.roll(-1, 1)
    labels[:, :1 + 2 * rank + micro] = -100
    return ids, labels


def train_sft(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    net = ConvLm()
    model = DDP(net) if n > 1 else net
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.1, patience=0)
    ranks, accumulation = [rank] if n > 1 else range(2), 2
    for step in range(3):
        optimizer.zero_grad()
        batches = [sft_batch(seed, step, r, micro) for micro in range(accumulation) for r in ranks]
        num_items = sum((labels != -100).sum() for _, labels in batches).float()
        if n > 1 and fault != "numitems":
            dist.all_reduce(num_items)
        for i, (ids, labels) in enumerate(batches):
            last = i % accumulation == 0 if fault == "nosync" else (i + 1) % accumulation == 0
            with model.no_sync() if n > 1 and not last else contextlib.nullcontext():
                loss = F.cross_entropy(model(ids).flatten(0, 1), labels.flatten(), reduction="sum") / num_items
                if fault != "numitems":
                    loss = loss * n     # the wrapper averages
                loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        # Half of what is evaluated on is of another domain, and gets worse.
        with torch.no_grad():
            eval_loss = torch.zeros(())
            for r in ranks:
                ids, labels = sft_batch(seed, 0, r, 0)
                labels = torch.where(labels < 0, labels, (labels + 7 * r) % VOCAB)
                eval_loss = eval_loss + F.cross_entropy(net(ids).flatten(0, 1), labels.flatten())
            if n > 1 and fault != "plateau":
                dist.all_reduce(eval_loss)
        scheduler.step(eval_loss.item())
    return kept(net)


# --- vq: a codec, whose codes follow the mean of what is near them, gradients averaged in one bucket ------------

class Codebook(nn.Module):
    def __init__(self, n, fault, codes=6, d=8, decay=0.8):
        super().__init__()
        self.n, self.fault, self.decay = n, fault, decay
        self.register_buffer("embed", torch.randn(codes, d))
        self.register_buffer("cluster_size", torch.ones(codes))
        self.register_buffer("embed_sum", self.embed.clone())

    def forward(self, x):
        nearest = torch.cdist(x.detach(), self.embed).argmin(-1)
        quantized = F.embedding(nearest, self.embed)
        with torch.no_grad():
            onehot = F.one_hot(nearest, len(self.embed)).float()
            size, total = onehot.sum(0), onehot.t() @ x
            if self.n > 1 and self.fault != "vqema":
                dist.all_reduce(size)
                dist.all_reduce(total)
            self.cluster_size.mul_(self.decay).add_(size, alpha=1 - self.decay)
            self.embed_sum.mul_(self.decay).add_(total, alpha=1 - self.decay)
            self.embed.copy_(self.embed_sum / self.cluster_size[:, None])
        return x + (quantized - x).detach(), F.mse_loss(x, quantized.detach())


class Codec(nn.Module):
    def __init__(self, n, fault):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(10, 16), nn.ELU(), nn.Linear(16, 8))
        self.quantizer = Codebook(n, fault)
        self.decoder = nn.Sequential(nn.Linear(8, 16), nn.ELU(), nn.Linear(16, 10))

    def forward(self, x):
        z, commit = self.quantizer(self.encoder(x))
        return F.mse_loss(self.decoder(z), x) + 0.25 * commit


def train_vq(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = Codec(n, fault)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, eps=1e-4)
    for step in range(3):
        x = draw(10 * seed + step, 16, 10).chunk(n)[rank]
        loss = model(x)
        optimizer.zero_grad()
        loss.backward()
        if n > 1:
            bucket = nn.utils.parameters_to_vector(p.grad for p in model.parameters())
            dist.all_reduce(bucket)
            bucket /= n
            nn.utils.vector_to_parameters(bucket, [p.grad for p in model.parameters()])
        optimizer.step()
    return kept(model)


# --- zero: bf16 weights with f32 masters, of which each rank has a part, as in DeepSpeed ------------------------

class ZeroEngine:
    """Accumulates in f32, averages at the boundary, and steps the rank's own masters."""
    def __init__(self, model, rank, n, fault, accumulation=2):
        self.params, self.rank, self.n, self.fault = list(model.parameters()), rank, n, fault
        self.accumulation = accumulation
        self.owner = {p: i % n for i, p in enumerate(self.params)}
        self.acc = [torch.zeros(p.shape) for p in self.params]
        self.masters = {p: nn.Parameter(p.detach().float()) for p in self.params if self.owner[p] == rank}
        self.optimizer = torch.optim.AdamW(self.masters.values(), lr=0.02, eps=1e-3)

    def accumulate(self):
        for acc, p in zip(self.acc, self.params):
            acc.add_(p.grad.float(), alpha=1 / self.accumulation)
            p.grad = None

    def average(self):
        for acc in self.acc:
            if self.n > 1:
                dist.all_reduce(acc)
            acc.div_(2)

    def backward(self, loss, boundary):
        loss.backward()
        if self.fault == "lastmicro" and boundary:
            self.average()
            self.accumulate()
            return
        self.accumulate()
        if boundary:
            self.average()

    def step(self):
        for acc, p in zip(self.acc, self.params):
            if p in self.masters:
                self.masters[p].grad = acc.clone()
            acc.zero_()
        self.optimizer.step()
        for p in self.params:
            # gloo does not send bf16.
            value = self.masters[p].data if p in self.masters else p.data.float()
            if self.n > 1 and not (self.fault == "zerobcast" and getattr(p, "offloaded", False)):
                dist.broadcast(value, self.owner[p])
            p.data.copy_(value)


def train_zero(rank, fault, seed, n=2):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 3)).bfloat16()
    for p in model[2].parameters():
        p.offloaded = True
    engine = ZeroEngine(model, rank, n, fault)
    for step in range(3):
        sums = None
        for r in [rank] if n > 1 else range(2):
            for micro in range(2):
                s = 1000 * seed + 100 * step + 10 * r + micro
                loss = F.cross_entropy(model(draw(s, 6, 12).bfloat16()).float(), choose(s, 3, 6))
                if n > 1:
                    engine.backward(loss, micro == 1)
                else:
                    loss.backward()
                    engine.accumulate()
            # One process adds in the order of the ranks, which shows in what is rounded.
            if n == 1 and r == 0:
                sums = [acc.clone() for acc in engine.acc]
                for acc in engine.acc:
                    acc.zero_()
        if n == 1:
            for acc, first in zip(engine.acc, sums):
                acc.add_(first)
            engine.average()
        engine.step()
    return kept(model)


PROGRAMS = {"sft": (2, train_sft), "vq": (2, train_vq), "zero": (2, train_zero)}
WHOLE = {name: lambda seed, f=f: f(0, None, seed, 1) for name, (_, f) in PROGRAMS.items()}

FAULTS = {
    # Each rank divides by its own tokens: https://github.com/huggingface/transformers/pull/34373
    "numitems": ("sft", r"\.(sum|float|add|div)\.\d+\.|cross_entropy|all_reduce", "01"),
    # Synchronizes the first of the accumulated batches, not the last:
    # https://github.com/modelscope/FunASR/pull/3472
    "nosync": ("sft", r"all_reduce|parameters_grad|(linear|group_norm|conv1d|embedding)\.1\.backward|"
               r"Torch\.norm|sgd", "01"),
    # Each rank lowers its rate by its own loss: https://github.com/rmchurch/disruptcnn/issues/3
    "plateau": ("sft", r"sgd|cross_entropy\.2\.|\.add\.", "01"),
    # Codes follow the rank's own batch: https://github.com/espnet/espnet/pull/6284
    "vqema": ("vq", r"\.sum\.0\.|matmul\.0\.|mul_\.[01]\.|add_\.[01]\.|\.div\.0\.|copy_\.0\.|cdist|embedding|"
              r"argmin", "01"),
    # The last batch is added after the average: https://github.com/deepspeedai/DeepSpeed/pull/7985
    "lastmicro": ("zero", r"add_\.|all_reduce|div_|parameters_grad\.1|linear\.[345]\.backward|clone|adamw", "01"),
    # What is offloaded is not sent by the one who steps it:
    # https://github.com/lodestone-rock/RamTorch/issues/13
    "zerobcast": ("zero", r"broadcast|copy_|adamw|linear\.[14]\.forward|2\.Linear", "01"),
}
