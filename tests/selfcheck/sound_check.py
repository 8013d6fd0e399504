"""Checks that the networks of sound.py are correct: gradients by finite differences, copies by comparison."""
import os
import sys
import tempfile
import zlib

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

import sound_net

STEP, NEAR = 1e-7, 1e-5


def copies(w):
    """For each name, which rank is the first that has the same values."""
    marks = {k: zlib.crc32(x.detach().double().contiguous().numpy().tobytes()) for k, x in w.items()}
    every = [None] * dist.get_world_size()
    dist.all_gather_object(every, marks)
    mine = every[dist.get_rank()]
    return every, {k: next(r for r, m in enumerate(every) if m.get(k) == mine[k]) for k in mine}


def total(x):
    every = [None] * dist.get_world_size()
    dist.all_gather_object(every, float(x))
    return sum(every)


def still(cls, seed):
    net = cls(None, seed)
    net.rate = 0.0   # an update inside of a step changes nothing
    if hasattr(net, "still"):
        net.still()
    return net


def direction(k, first, shape):
    g = torch.Generator().manual_seed(zlib.crc32(f"{k} {first}".encode()))
    return torch.randn(shape, generator=g, dtype=torch.float64)


def slope(cls, seed, s, name):
    """The derivative of the loss by finite differences, all ranks' copies of w[name] moved alike."""
    ends = []
    for sign in (1, -1):
        net = still(cls, seed)
        if name in net.w:
            first = copies(net.w)[1][name]
        else:
            copies(net.w)
        if name in net.w:
            with torch.no_grad():
                net.w[name].add_(direction(name, first, net.w[name].shape), alpha=sign * STEP)
        net.step(s)
        share = net.SHARE or 1 / net.n
        ends.append(total(sum(net.counted(name))) * share)
    return (ends[0] - ends[1]) / (2 * STEP)


def gradients(cls, seed, s):
    net = still(cls, seed)
    every, first = copies(net.w)
    names = sorted(set().union(*every))
    net.step(s)
    grads = net.graded()
    bad = []
    for k in names:
        mine = torch.sum(grads[k] * direction(k, first[k], grads[k].shape)) \
            if k in grads and first[k] == dist.get_rank() else 0
        got, want = total(mine), slope(cls, seed, s, k)
        if not abs(got - want) <= NEAR * (abs(want) + 0.01):
            bad.append(f"step {s} {k}: {got:.8g} is not {want:.8g}")
    return bad


def alike(cls, seed):
    """After all steps, in the precision of the runs."""
    net = cls(None, seed)
    _, before = copies(net.w)
    for s in range(net.STEPS):
        net.step(s)
        with torch.no_grad():
            net.update(s)
        for w in net.w.values():
            w.grad = None
    _, after = copies(net.w)
    moved = [k for k, w in net.w.items() if not torch.isfinite(w).all()]
    return [f"not finite: {k}" for k in moved] + \
        [f"rank {dist.get_rank()} {k}: no copy of rank {before[k]}'s any more" for k in before if after[k] != before[k]
         and not getattr(net, "PART", False)]


def rank_main(r, n, cls, store, box):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{store}", rank=r, world_size=n)
    bad = alike(cls, 1)
    torch.set_default_dtype(torch.float64)
    for k in sound_net.LOW:
        sound_net.LOW[k] = torch.float64
    for s in cls.CHECKED:
        bad += [b for b in gradients(cls, 1, s) if r == 0]
    with open(f"{box}{r}", "w") as f:
        f.write("".join(b + "\n" for b in bad))
    dist.barrier()


def main(cases, nets, ranks):
    wrong = 0
    for case in cases:
        n = ranks.get(case, 2)
        with tempfile.TemporaryDirectory() as d:
            box = os.path.join(d, "bad")
            mp.start_processes(rank_main, (n, nets[case], os.path.join(d, "store"), box), n, start_method="fork")
            bad = [line for r in range(n) for line in open(f"{box}{r}").read().splitlines()]
        wrong += bool(bad)
        print(f"{case}: {'; '.join(bad) or 'correct'}")
        sys.stdout.flush()
    return wrong > 0
