"""Data-parallel ranks (gloo) and one process with the whole batch, each in accrecord's own layout. Needs torch.

Usage: ranks.py OUT NAME...

A name is one, or a way and perhaps a fault of it behind a dash, with -1 for statistics only:
    ddp     DistributedDataParallel
    hand    each gradient summed over the ranks and divided by their number
    group   as hand, of a group that is named; one.group: a process alone, whose group is itself
    tokens  as hand, of a loss that is a sum over tokens, divided by their number on all ranks times that of the ranks
    lost    (hand, group, tokens) one weight's gradient is not summed
    sum     (hand) they are not divided
    stale   rank 1 has one weight 5 % off
    kernel  rank 1's second product is 3 % off
    own     (tokens) each rank divides by its own tokens, which are not as many"""
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.multiprocessing as mp  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

from nets import accrecord  # noqa: E402

RANKS, BATCH, TOKENS, VOCABULARY, WIDTH = 2, 4, 6, 11, 16


class Net(nn.Module):
    def __init__(self, off):
        super().__init__()
        self.embed, self.norm = nn.Embedding(VOCABULARY, WIDTH), nn.LayerNorm(WIDTH)
        self.up, self.down, self.off = nn.Linear(WIDTH, 32), nn.Linear(32, WIDTH), off

    def forward(self, tokens):
        h = self.norm(self.embed(tokens))
        h = h + self.down(F.gelu(self.up(h))) * self.off
        return F.linear(h, self.embed.weight)


def loss_of(logits, labels, way, fault, ranks):
    logits, labels = logits.reshape(-1, VOCABULARY), labels.reshape(-1)
    if way not in ("tokens", "one.tokens"):
        return F.cross_entropy(logits, labels)
    count = (labels != -100).sum()
    if ranks > 1 and fault != "own":
        dist.all_reduce(count)
        count = count / ranks
    return F.cross_entropy(logits, labels, reduction="sum") / count


def run(rank, out, name, store):
    torch.set_num_threads(1)
    level = 1 if name.endswith("-1") else 2
    way, _, fault = name[:-2].partition("-") if level == 1 else name.partition("-")
    ranks = 1 if way.startswith("one") else RANKS
    if ranks > 1 or way == "one.group":
        dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
    torch.manual_seed(4)
    net = Net(1.03 if fault == "kernel" and rank == 1 else 1.0)
    tokens = torch.randint(VOCABULARY, (BATCH, TOKENS + 1))
    labels = tokens[:, 1:].clone()
    if way in ("tokens", "one.tokens"):
        labels[0, :3] = -100    # the ranks have 9 and 12
    if fault == "stale" and rank == 1:
        with torch.no_grad():
            net.up.weight.mul_(1.05)
    part = slice(rank * BATCH // ranks, (rank + 1) * BATCH // ranks)
    model = nn.parallel.DistributedDataParallel(net) if way == "ddp" else net
    # The bench knows nothing of ranks; neither do the optimizer's parameters.
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    accrecord.start_record(output_dir=os.path.join(out, name), record_level=level)
    loss = loss_of(model(tokens[part, :-1]), labels[part], way, fault, ranks)
    loss.backward()
    if way in ("hand", "tokens", "group", "one.group"):
        group = dist.group.WORLD if way.endswith("group") else None
        for key, p in net.named_parameters():
            if fault == "lost" and key == "norm.weight":
                continue
            dist.all_reduce(p.grad, **({} if group is None else {"group": group}))
            if fault != "sum":
                p.grad.div_(ranks)
    optimizer.step()
    accrecord.record_switch(False)


def main():
    out, names = sys.argv[1], sys.argv[2:]
    for name in names:
        with tempfile.TemporaryDirectory() as d:
            mp.start_processes(run, (out, name, os.path.join(d, "store")), nprocs=1 if name.startswith("one") else RANKS,
                               start_method="fork")


if __name__ == "__main__":
    main()
