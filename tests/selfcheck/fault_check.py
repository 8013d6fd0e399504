"""Checks of a maker's networks, as sound.py does, and that each of its bugs moves gradients or weights on one rank at
least."""
import functools
import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from command import command_line
import sound
import sound_check

MOVED = 1e-3   # of the norm; rounding is 1e-6


def steps(cls, fault):
    """Gradients of each step, and the weights after all."""
    net, seen = cls(fault, 1), {}
    for s in range(net.STEPS):
        net.step(s)
        seen |= {f"gradient of {k}, step {s}": g.clone() for k, g in net.graded().items()}
        with torch.no_grad():
            net.update(s)
        for w in net.w.values():
            w.grad = None
    return seen | {f"{k} after all": w.detach().clone() for k, w in net.w.items()}


def moved(r, n, fault, cls, store, box):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{store}", rank=r, world_size=n)
    right, wrong = steps(cls, None), steps(cls, fault)
    far = {k: float((wrong[k] - x).norm() / (x.norm() + 1e-6)) if k in wrong else 1.0 for k, x in right.items()}
    with open(f"{box}{r}", "w") as f:
        f.write("".join(f"{far[k]:.2g} {k}, rank {r}\n" for k in far if not far[k] < MOVED))
    dist.barrier()


def bugs(names, faults, nets, ranks):
    """Whether any of them moves nothing."""
    still = 0
    for fault in names:
        kind = faults[fault][0]
        n = ranks.get(kind, 2)
        with tempfile.TemporaryDirectory() as d:
            box = os.path.join(d, "far")
            mp.start_processes(moved, (n, fault, nets[kind], os.path.join(d, "store"), box), n, start_method="fork")
            far = [line for r in range(n) for line in open(f"{box}{r}").read().splitlines()]
        still += not far
        first = max(far, key=lambda line: float(line.split()[0]), default="nothing")
        print(f"{kind}-{fault}: {len(far)} moved, by {first}", flush=True)
    return still > 0


def check(names, faults, nets, ranks):
    """names: of networks and of bugs; all if there are none."""
    names = names or [*nets, *faults]
    wrong = sound_check.main([k for k in names if k in nets], nets, ranks)
    return bugs([k for k in names if k in faults], faults, nets, ranks) or wrong


def main(*parts):
    """The words of a maker whose networks and bugs these modules have."""
    faults = {k: f for part in parts for k, f in part.FAULTS.items()}
    nets = {k: net for part in parts for k, net in part.NETS.items()}
    ranks = {k: net.RANKS for k, net in nets.items() if hasattr(net, "RANKS")}
    if "--check" in sys.argv:
        sys.exit(check([a for a in sys.argv[1:] if a[0] != "-"], faults, nets, ranks))
    command_line(faults, functools.partial(sound.run, nets, ranks), ranks)
