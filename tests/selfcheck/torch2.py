#!/usr/bin/env python3
"""Recordings of programs on two and four ranks made of PyTorch 2's own libraries for many ranks (FSDP of both kinds,
DTensor, pipelining, functional collectives), recorded with accrecord(7), right ones and ones with bugs between ranks.

Usage: torch2.py OUT CASE... [--task tensor|statistics] [--seed N] [--small]   needs PyTorch 2.6 (gloo, on the CPU)
       torch2.py --faults
       torch2.py --check [PROGRAM|BUG...] [--seed N]

A case is a program of RANKS or PROGRAM-BUG; its recording is OUT/CASE, with two steps. The programs are in
torch2_parts.py (data parallel) and torch2_split.py (the rest). --check asserts that each program has the same
losses when it is recorded as when it is not, those of WHOLE also those of one process with the whole batch, and
that each bug moves a loss or a weight of some rank by more than 1e-3 of its norm. --small: a smaller model,
for recordings that are kept.
"""
import argparse
import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

import command

STEPS = 2
CHECKED = 3   # steps of --check: the first of Adam does not show how large gradients are, and so no clipping
RANKS = {"ddp": 2, "fsdp1": 2, "flat": 2, "fsdp2": 2, "ac": 2, "tp": 2, "sp": 2, "losspar": 2, "grid": 4, "gpipe": 4,
         "zero": 2, "functional": 2, "whole": 2}

# Of a program that one process can do: parts of the data, and what is clipped.
WHOLE = {"ddp": (2, lambda name: False), "fsdp1": (2, lambda name: True), "fsdp2": (2, lambda name: True),
         "tp": (1, lambda name: "norm" not in name), "sp": (1, lambda name: True)}

# Of two ranks that do not agree nobody can say which is wrong: each may be named.
CLIP = r"mul_|_foreach_mul_|norm|clamp|sqrt|rdiv|stack"
FAULTS = {
    # Another learning rate on rank 1.
    "rate": ("fsdp1", r"adamw", "01"),
    "rate2": ("fsdp2", r"adamw", "01"),
    "ratezero": ("zero", r"adamw", "01"),
    "ratesp": ("sp", r"adamw", "01"),
    # Gradients are clipped by the norm of the rank's own parts.
    "localclip": ("fsdp1", CLIP, "01"),
    "localclip2": ("fsdp2", CLIP, "01"),
    # The gradient of a weight that FSDP does not know is not reduced.
    "notreduced": ("whole", r"Torch\.mul\.0\.backward|adamw", "01"),
    # The gradient of a weight that DistributedDataParallel is told to ignore is not reduced.
    "ignored": ("ddp", r"linear\.4\.backward|layers\.0\.mlp\.w1|adamw", "01"),
    # Rank 1 divides its loss by the number of ranks.
    "divides": ("fsdp2", r"cross_entropy|div", "01"),
    # The all_reduce of one weight's gradient between replicas of the stages is forgotten; a linear of each micro-batch.
    "forgotten": ("gpipe", r"linear\.(4|11|12)\.backward|mlp\.w1|adamw", "0123"),
    # Rank 1 has other labels than the rank it shares the tokens with.
    "otherdata": ("sp", r"cross_entropy", "01"),
    # The norms' weights, which all ranks have, are drawn by rank.
    "seednorm": ("sp", r"layer_norm|norm\.LayerNorm|adamw", "01"),
    # The gradient of what all ranks use is not summed on its way back.
    "nocopy": ("functional", r"(linear\.0|layer_norm\.0|embedding\.0)\.backward|adamw", "01"),
    # Each rank goes on with the sum of its own hidden units.
    "noreduce": ("functional", r"linear\.[12]\.|Tensor\.add", "01"),
}


def local(p):
    return p.detach().to_local() if hasattr(p, "to_local") else p.detach()


def train(rank, case, task, out, store, seed, kept=None):
    """A rank of a case, recorded unless out is None; kept: a folder for its losses and weights."""
    import torch2_parts
    import torch2_split
    torch.set_num_threads(1)
    name, _, fault = case.partition("-")
    prepare = getattr(torch2_parts, name, None) or getattr(torch2_split, name)
    dist.init_process_group("gloo", f"file://{store}", rank=rank, world_size=RANKS[name])
    model, step = prepare(rank, fault or None, seed)
    steps = range(CHECKED if kept else STEPS)
    if out:
        import accrecord
        with accrecord.record(output_dir=os.path.join(out, case), record_level=2 if task == "tensor" else 1):
            losses = [step(i) for i in steps]
    else:
        losses = [step(i) for i in steps]
    if kept:
        torch.save({"losses": [loss.item() for loss in losses if loss is not None],
                    "weights": {key: local(p).clone() for key, p in model.named_parameters()}},
                   os.path.join(kept, str(rank)))
    dist.barrier()
    dist.destroy_process_group()


def results(case, seed, recorded=False):
    """Losses and weights of each rank."""
    ranks = RANKS[case.partition("-")[0]]
    with tempfile.TemporaryDirectory() as d:
        mp.start_processes(train, (case, "tensor", d if recorded else None, os.path.join(d, "store"), seed, d), ranks,
                           start_method="fork")
        return [torch.load(os.path.join(d, str(r))) for r in range(ranks)]


def alone(_, name, seed, kept):
    import torch2_parts
    torch.set_num_threads(1)
    step = torch2_parts.one_process(seed, *WHOLE[name])
    torch.save([step(i).item() for i in range(CHECKED)], kept)


def losses_alone(name, seed):
    """Of one process, which is not this one: ranks cannot be forked where backward has begun threads."""
    with tempfile.NamedTemporaryFile() as f:
        mp.start_processes(alone, (name, seed, f.name), 1, start_method="fork")
        return torch.load(f.name)


def mean_losses(ranks):
    having = [r["losses"] for r in ranks if r["losses"]]
    return [sum(losses) / len(having) for losses in zip(*having)]


def check_program(name, seed):
    ranks = results(name, seed)
    recorded = results(name, seed, recorded=True)
    assert [r["losses"] for r in ranks] == [r["losses"] for r in recorded], (name, ranks, recorded)
    said = f"{name}: {RANKS[name]} ranks, losses {mean_losses(ranks)}, recorded the same"
    if name in WHOLE:
        off = max(abs(a - b) for a, b in zip(losses_alone(name, seed), mean_losses(ranks)))
        assert off < 1e-4, (name, off)
        said += f", at most {off:.1e} off one process"
    print(said, flush=True)
    return ranks


def check_fault(fault, right, seed):
    """right: what the ranks of its program have."""
    case = f"{FAULTS[fault][0]}-{fault}"
    moved = []
    for a, b in zip(results(case, seed), right):
        moved += [(abs(x - y) / abs(y), "loss") for x, y in zip(a["losses"], b["losses"])]
        moved += [((a["weights"][key] - w).norm().item() / w.norm().item(), key)
                  for key, w in b["weights"].items() if w.norm() > 1e-4]
    most, key = max(moved)
    assert most > 1e-3, (case, most)
    print(f"{case}: {key} moves by {most:.1e}", flush=True)


def check(names, seed):
    right, bad = {}, False
    for name in names or [*RANKS, *FAULTS]:
        program = FAULTS[name][0] if name in FAULTS else name
        try:
            if program not in right:
                right[program] = check_program(program, seed)
            if name in FAULTS:
                check_fault(name, right[program], seed)
        except Exception as e:
            bad = True
            print(f"{name}: WRONG {type(e).__name__} {e}", flush=True)
    sys.exit(bad)


def main():
    if "--faults" not in sys.argv:
        if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 6):
            print(f"torch2.py: needs PyTorch 2.6, this is {torch.__version__}", file=sys.stderr)
            sys.exit(2)
        import torch2_parts
        if "--small" in sys.argv:
            sys.argv.remove("--small")
            torch2_parts.halve()
        import torch2_split  # noqa: F401, once for all ranks, which are forked; it takes the dimensions
    if "--check" in sys.argv:
        p = argparse.ArgumentParser()
        p.add_argument("--check", nargs="*")
        p.add_argument("--seed", type=int, default=1)
        a = p.parse_args()
        check(a.check, a.seed)
    command.command_line(FAULTS, train, RANKS)


if __name__ == "__main__":
    main()
