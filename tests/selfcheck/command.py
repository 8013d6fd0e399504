"""What the makers are told, how they start their ranks, and what a rank of theirs does."""
import argparse
import functools
import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data"))
from recorder import Recorder  # noqa: E402
from writers import Msprobe  # noqa: E402


def run(nets, ranks, r, case, task, out, store, seed):
    """A rank of a case: two steps of its network, with what its marks say."""
    torch.set_num_threads(1)
    kind, *marks = case.split("-")
    fault = next((m for m in marks if m != "noise"), None)
    dist.init_process_group("gloo", f"file://{store}", rank=r, world_size=ranks.get(kind, 2))
    net = nets[kind](fault, seed)
    for s in range(2):
        rec = Recorder(noise=70 + r + 10 * seed + 1000 * s if "noise" in marks else None)
        with rec.recording():
            net.step(s)
        Msprobe(os.path.join(out, case, f"step{s}", f"rank{r}"), task).write(rec.events)
        with torch.no_grad():
            net.update(s)
            for w in net.w.values():
                w.grad = None
    dist.barrier()


def of_networks(faults, nets, ranks):
    """The words of a maker of several networks; ranks: of a network, how many, if not 2."""
    command_line(faults, functools.partial(run, nets, ranks), ranks)


def command_line(faults, rank_main, ranks=None):
    """The words of a maker: rank_main(rank, case, task, out, store, seed) on each rank of a case."""
    p = argparse.ArgumentParser()
    p.add_argument("out", nargs="?")
    p.add_argument("cases", nargs="*")
    p.add_argument("--task", default="tensor")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--faults", action="store_true")
    a = p.parse_args()
    if a.faults:
        for name, (layout, op, who) in faults.items():
            print(name, layout, op, who, sep="\t")
        return
    for case in a.cases:
        with tempfile.TemporaryDirectory() as d:
            mp.start_processes(rank_main, (case, a.task, a.out, os.path.join(d, "store"), a.seed),
                               (ranks or {}).get(case.split("-")[0], 2), start_method="fork")
