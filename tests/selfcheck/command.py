"""What make.py and fresh.py are told, and how they start their ranks."""
import argparse
import os
import tempfile

import torch.multiprocessing as mp


def command_line(faults, rank_main, ranks=None):
    """The words of make.py and fresh.py: rank_main(rank, case, task, out, store, seed) on each rank of a case;
    ranks: of a layout, how many, if not 2."""
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
