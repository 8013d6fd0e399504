#!/usr/bin/env python3
"""Dumps of correct runs on two to four ranks, as users of other trainers have them, by one who had not read how runs
are judged.

Usage: sound.py OUT CASE... [--task tensor|statistics] [--seed N]     needs python3-torch (gloo)
       sound.py --check [CASE...]

As others.py; tests/selfcheck/score.py OUT --sound scores these. Networks: those of NETS; what each is stands beside
it. There is no bug in any. --check compares each gradient with finite differences of the loss of all ranks, in double
precision and along one direction for each weight, and what has to be the same on all ranks after the last step.
No "-noise" for masters, which computes in few bits, nor for experts, gates, grpo and ppo, which count with sum().
"""
import functools
import os
import sys

import torch
import torch.distributed as dist

from command import command_line, recorded
import sound_check
from sound_data import NETS as DATA
from sound_split import NETS as SPLIT
from sound_state import NETS as STATE
from sound_train import NETS as TRAIN

FAULTS = {}
NETS = {**DATA, **TRAIN, **STATE, **SPLIT}
RANKS = {k: net.RANKS for k, net in NETS.items() if hasattr(net, "RANKS")}


def run(nets, ranks, r, case, task, out, store, seed):
    torch.set_num_threads(1)
    kind, *marks = case.split("-")
    dist.init_process_group("gloo", f"file://{store}", rank=r, world_size=ranks.get(kind, 2))
    net = nets[kind](next((m for m in marks if m != "noise"), None), seed)
    for s in range(net.STEPS):
        with recorded(os.path.join(out, case), s, r, task,
                      70 + r + 10 * seed + 1000 * s if "noise" in marks else None):
            net.step(s)
            if net.INSIDE:
                with torch.no_grad():
                    net.update(s)
        if not net.INSIDE:
            with torch.no_grad():
                net.update(s)
        for w in net.w.values():
            w.grad = None
    dist.barrier()


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(sound_check.main([a for a in sys.argv[1:] if a[0] != "-"] or list(NETS), NETS, RANKS))
    command_line(FAULTS, functools.partial(run, NETS, RANKS), RANKS)
