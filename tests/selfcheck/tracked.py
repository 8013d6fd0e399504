#!/usr/bin/env python3
"""Dumps of runs on two to four ranks with bugs between ranks that public trackers report, and of the same networks
without one, by one who had not read how runs are judged.

Usage: tracked.py OUT CASE... [--task tensor|statistics] [--seed N]     needs python3-torch (gloo)
       tracked.py --check [NETWORK|BUG...]

As others.py; tests/selfcheck/score.py OUT --tracked scores these. A case is a network of NETS, with "-noise" or
without, or NETWORK-noise-BUG; each bug stands with a report of it in the FAULTS of tracked_tensor.py, tracked_parts.py
and tracked_data.py. --check does with each network what sound.py does, and says how far each bug moves gradients and
weights, on one rank at least.
"""
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
import tracked_data
import tracked_parts
import tracked_tensor

PARTS = (tracked_tensor, tracked_parts, tracked_data)
FAULTS = {k: f for part in PARTS for k, f in part.FAULTS.items()}
NETS = {k: net for part in PARTS for k, net in part.NETS.items()}
RANKS = {k: net.RANKS for k, net in NETS.items() if hasattr(net, "RANKS")}
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


def bugs(faults):
    """Whether any of them moves nothing."""
    still = 0
    for fault in faults:
        kind = FAULTS[fault][0]
        n = RANKS.get(kind, 2)
        with tempfile.TemporaryDirectory() as d:
            box = os.path.join(d, "far")
            mp.start_processes(moved, (n, fault, NETS[kind], os.path.join(d, "store"), box), n, start_method="fork")
            far = [line for r in range(n) for line in open(f"{box}{r}").read().splitlines()]
        still += not far
        first = max(far, key=lambda line: float(line.split()[0]), default="nothing")
        print(f"{kind}-{fault}: {len(far)} moved, by {first}", flush=True)
    return still > 0


def check(names):
    wrong = sound_check.main([k for k in names if k in NETS], NETS, RANKS)
    return bugs([k for k in names if k in FAULTS]) or wrong


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(check([a for a in sys.argv[1:] if a[0] != "-"] or [*NETS, *FAULTS]))
    command_line(FAULTS, functools.partial(sound.run, NETS, RANKS), RANKS)
