"""What the makers are told, how they start their ranks, and what a rank of theirs does."""
import argparse
import contextlib
import functools
import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "data"), os.path.join(HERE, "..", "..", "python")]
from recorder import Recorder  # noqa: E402
from writers import Msprobe  # noqa: E402


@contextlib.contextmanager
def recorded(folder, s, r, task, noise=None):
    """Records a step of a rank: as msprobe does, what is listed in OPS; or with accrecord, all."""
    if task == "accrecord":
        import accrecord
        if noise is not None:
            raise ValueError("accrecord: what computes in it has no noise of these scripts")
        if s == 0:
            accrecord.start_record(output_dir=folder)
        else:
            accrecord.step(s)
            accrecord.record_switch(True)
        yield
        accrecord.record_switch(False)
        return
    rec = Recorder(noise=noise)
    with rec.recording():
        yield
    Msprobe(os.path.join(folder, f"step{s}", f"rank{r}"), task).write(rec.events)


def run(nets, ranks, r, case, task, out, store, seed):
    """A rank of a case: two steps of its network, with what its marks say."""
    torch.set_num_threads(1)
    kind, *marks = case.split("-")
    fault = next((m for m in marks if m != "noise"), None)
    dist.init_process_group("gloo", f"file://{store}", rank=r, world_size=ranks.get(kind, 2))
    net = nets[kind](fault, seed)
    for s in range(2):
        with recorded(os.path.join(out, case), s, r, task,
                      70 + r + 10 * seed + 1000 * s if "noise" in marks else None):
            net.step(s)
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
    p.add_argument("--task", default="tensor", help="tensor, statistics, md5; accrecord: tensors, with that recorder")
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
