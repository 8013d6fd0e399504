#!/usr/bin/env python3
"""Recordings of programs on two to four ranks that are all right, though what their ranks have in common is
less, or other, than one would ask of replicas at first sight; recorded with accrecord(7).

Usage: calm.py OUT PROGRAM... [--task tensor|statistics] [--seed N]     needs python3-torch (gloo)
       calm.py --faults
       calm.py --check [PROGRAM...] [--seed N]

The recording of a program is OUT/PROGRAM, with the steps that the program tells or that accrecord finds,
which of a rank without an optimizer of torch are one. The programs are in calm_data.py (replicas),
calm_roles.py (ranks with tasks of their own) and calm_split.py (parts of a model). --check asserts that the
ranks of each end with what one process computes: with the whole batch and model, or, where ranks part by
design, with all ranks' copies in turn; and what else a program says in TOO that it is right by.
"""
import argparse
import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "python"))
import accrecord  # noqa: E402
import calm_data  # noqa: E402
import calm_roles  # noqa: E402
import calm_split  # noqa: E402
import command  # noqa: E402

PROGRAMS, WHOLE, TOO, FAULTS = {}, {}, {}, {}
for module in calm_data, calm_roles, calm_split:
    PROGRAMS.update(module.PROGRAMS)
    WHOLE.update(module.WHOLE)
    TOO.update(module.TOO)
RANKS = {name: ranks for name, (ranks, _) in PROGRAMS.items()}


def start(rank, name, store):
    """What torchrun and the head of a script do."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{store}", rank=rank, world_size=RANKS[name])
    return PROGRAMS[name][1]


def record(rank, name, task, out, store, seed):
    """A rank of a program that is recorded."""
    train = start(rank, name, store)
    with accrecord.record(output_dir=os.path.join(out, name), record_level=2 if task == "tensor" else 1):
        train(rank, seed)
    dist.barrier()


def keep(rank, name, out, store, seed):
    """A rank of a program whose results are kept."""
    train = start(rank, name, store)
    torch.save(train(rank, seed), os.path.join(out, str(rank)))
    dist.barrier()


def results(name, seed):
    with tempfile.TemporaryDirectory() as d:
        mp.start_processes(keep, (name, d, os.path.join(d, "store"), seed), RANKS[name], start_method="fork")
        return [torch.load(os.path.join(d, str(r))) for r in range(RANKS[name])]


def piece(whole, like, rank):
    """A rank's part of a weight: of dimensions that are split, the rank's one of their chunks."""
    for dim, (a, b) in enumerate(zip(whole.shape, like.shape)):
        if a != b:
            whole = whole.chunk(a // b, dim)[rank % (a // b)]
    return whole


def check_program(name, seed):
    torch.set_num_threads(1)
    whole, ranks = WHOLE[name](seed), results(name, seed)
    seen, worst = set(), 0.0
    for r, got in enumerate(ranks):
        right = whole[r] if isinstance(whole, list) else whole
        if isinstance(whole, list):
            assert set(right) <= set(got), (name, r, set(right) - set(got))
        for key in set(got) & set(right):
            seen.add(key)
            a, b = got[key], piece(right[key], got[key], r)
            assert a.shape == b.shape, (name, key, r, a.shape, b.shape)
            # What is 0 but for rounding has no norm.
            error = (a - b).norm().item() / max(b.norm().item(), 1e-2)
            assert error < 1e-5, (name, key, r, error)
            worst = max(worst, error)
    keys = set().union(*whole) if isinstance(whole, list) else set(whole)
    assert seen == keys, (name, keys - seen)
    if name in TOO:
        TOO[name](ranks, seed)
    print(f"{name}: {len(ranks)} ranks, {len(seen)} tensors, at most {worst:.1e} off", flush=True)


def check(names, seed):
    bad = 0
    for name in names or PROGRAMS:
        try:
            check_program(name, seed)
        except Exception as e:
            bad = 1
            print(f"{name}: WRONG {type(e).__name__} {e}", flush=True)
    sys.exit(bad)


if __name__ == "__main__":
    if "--check" in sys.argv:
        p = argparse.ArgumentParser()
        p.add_argument("--check", nargs="*")
        p.add_argument("--seed", type=int, default=1)
        a = p.parse_args()
        check(a.check, a.seed)
    command.command_line(FAULTS, record, RANKS)
