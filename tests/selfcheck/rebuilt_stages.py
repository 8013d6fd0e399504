"""Pipelines whose stages share an embedding, with what trackers report: copies that differ, norms that count it twice,
sums in the wrong order.

Each train(rank, fault, seed, n) is a user's program; with n = 1 it is what one process does that has the whole
batch and model.
"""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

from rebuilt_kit import HID, VOCAB, choose, kept, my_group, reduce_scatter


# --- pipe: two stages with a tied embedding, and a norm over both that counts it once ---------------------------

class Stage(nn.Module):
    """Of a language model: the first stage embeds, the last has the head; one process has both."""
    def __init__(self, first, last, tied):
        super().__init__()
        self.first, self.last, self.tied = first, last, tied
        if first:
            self.pos = nn.Parameter(0.1 * torch.randn(7, HID))
            self.block0 = nn.Sequential(nn.LayerNorm(HID), nn.Linear(HID, 2 * HID), nn.GELU(), nn.Linear(2 * HID, HID))
        else:   # a seed gives all the same weights
            torch.randn(7, HID), nn.Linear(HID, 2 * HID), nn.Linear(2 * HID, HID)
        if last:
            self.rnn, self.norm = nn.Linear(2 * HID, HID), nn.LayerNorm(HID)

    def forward(self, x, labels=None):
        if self.first:
            x = F.embedding(x, self.tied) + self.pos
            x = x + self.block0(x)
        if not self.last:
            return x
        h = torch.zeros_like(x[:, 0])
        out = []
        for t in range(x.shape[1]):
            h = torch.tanh(self.rnn(torch.cat([x[:, t], h], -1)))
            out.append(h)
        logits = F.linear(self.norm(torch.stack(out, 1)), self.tied)
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def make_stage(seed, first, last):
    torch.manual_seed(seed)
    return Stage(first, last, nn.Parameter(0.4 * torch.randn(VOCAB, HID)))


def run_pipe(stage, peer, batches):
    """All forwards, then all backwards; accumulates gradients of the mean loss."""
    saved = []
    for tokens in batches:
        ids, labels = tokens[:, :-1], tokens[:, 1:]
        if stage.first and stage.last:
            saved.append((None, stage(ids, labels)))
        elif stage.first:
            out = stage(ids)
            dist.send(out.detach(), peer)
            saved.append((None, out))
        else:
            x = torch.empty(*ids.shape, HID)
            dist.recv(x, peer)
            saved.append((x.requires_grad_(), stage(x, labels)))
    for x, out in saved:
        if stage.last:
            (out / len(batches)).backward()
            if x is not None:
                dist.send(x.grad, peer)
        else:
            grad = torch.empty_like(out)
            dist.recv(grad, peer)
            out.backward(grad)


def train_pipe(rank, fault, seed, n=2):
    stage = make_stage(seed, rank == 0, rank == n - 1)
    if n > 1:
        # Each stage draws what is its own; the tied weight is that of the first.
        if rank == 1:
            stage.tied.data.normal_(std=0.4)
        if fault != "tiedinit":
            dist.broadcast(stage.tied.data, 0)
    optimizer = torch.optim.SGD(stage.parameters(), lr=0.5, momentum=0.8)
    for step in range(3):
        optimizer.zero_grad()
        run_pipe(stage, 1 - rank, [choose(100 * seed + 10 * step + m, VOCAB, 2, 8) for m in range(2)])
        if n > 1:
            dist.all_reduce(stage.tied.grad)
        counted = [p for p in stage.parameters() if p is not stage.tied or stage.first or fault == "tiednorm"]
        square = torch.stack([p.grad.square().sum() for p in counted]).sum()
        if n > 1:
            dist.all_reduce(square)
        clip_coeff = (0.3 / (square.sqrt() + 1e-6)).clamp(max=1.0)
        for p in stage.parameters():
            p.grad.mul_(clip_coeff)
        optimizer.step()
    return kept(stage)


# --- distopt: the same in two data parallel pipelines, whose optimizer has half of a flat buffer per rank -------

def train_distopt(rank, fault, seed, n=4):
    pp, dp = (rank // 2, rank % 2) if n > 1 else (0, 0)
    if n > 1:
        dp_group, emb_group = my_group(rank, [0, 1], [2, 3]), my_group(rank, [0, 2], [1, 3])
    stage = make_stage(seed + 3, pp == 0, pp == 1 or n == 1)
    # The embedding is first in the buffer of the first stage and last in that of the last one.
    params = sorted(stage.parameters(), key=lambda p: (p is stage.tied) == (pp == 1))
    size = sum(p.numel() for p in params)
    buffer, grads = torch.zeros(size + size % 2), torch.zeros(size + size % 2)
    offset = 0
    for p in params:
        buffer[offset:offset + p.numel()] = p.data.flatten()
        p.data = buffer[offset:offset + p.numel()].view_as(p)
        p.grad = grads[offset:offset + p.numel()].view_as(p)
        offset += p.numel()
    shard = nn.Parameter(buffer.chunk(2)[dp] if n > 1 else buffer)
    optimizer = torch.optim.AdamW([shard], lr=0.01, eps=1e-3)

    def embedding_grads():
        if n > 1:
            dist.all_reduce(stage.tied.grad, group=emb_group)

    for step in range(2):
        grads.zero_()
        run_pipe(stage, (rank + 2) % 4, [choose(100 * seed + 10 * step + 2 * r + m, VOCAB, 2, 8)
                                         for r in ([dp] if n > 1 else range(2)) for m in range(2)])
        if fault != "tiedorder":
            embedding_grads()
        if n > 1:
            grads.chunk(2)[dp].copy_(reduce_scatter(grads, dp_group) / 2)
        if fault == "tiedorder":
            embedding_grads()
        shard.grad = grads.chunk(2)[dp] if n > 1 else grads
        optimizer.step()
        if n > 1:
            parts = [torch.empty_like(shard) for _ in range(2)]
            dist.all_gather(parts, shard.data, group=dp_group)
            buffer.copy_(torch.cat(parts))
    return kept(stage)


PROGRAMS = {"pipe": (2, train_pipe), "distopt": (4, train_distopt)}
WHOLE = {name: lambda seed, f=f: f(0, None, seed, 1) for name, (_, f) in PROGRAMS.items()}

FAULTS = {
    # A stage draws its copy anew: https://github.com/PaddlePaddle/PaddleNLP/pull/7772
    "tiedinit": ("pipe", r"embedding|linear\.(7|15)\.|all_reduce\.0\.|sgd", "01"),
    # The norm has the tied weight twice: https://github.com/NVIDIA/Megatron-LM/pull/7227
    "tiednorm": ("pipe", r"square|\.sum\.|stack|all_reduce\.1\.|sqrt|\.add\.|__rdiv__|clamp|mul_", "01"),
    # Parts that are averaged are added to parts that are not: https://github.com/NVIDIA/Megatron-LM/issues/844
    "tiedorder": ("distopt", r"all_reduce|all_to_all|\.sum\.0\.|\.div\.0\.|copy_\.0\.|adamw", "0123"),
}
