"""What the makers of recordings of whole programs share: a rank of a case, recorded or kept, and --check.

A set has PROGRAMS, name: (ranks, train(rank, fault, seed), which gives the weights it ends with by name);
WHOLE, name: function of a seed that gives what one process with the whole batch and model has, a list where ranks
part by design, {} where they draw by themselves; FAULTS, and TOO, name: what else is asserted of all ranks.
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
import command  # noqa: E402

PROGRAMS, WHOLE, FAULTS, RANKS, TOO = {}, {}, {}, {}, {}


def right(train):
    """train(rank, seed) of a program of which there are no bugs."""
    return lambda rank, fault, seed: train(rank, seed)


def start(rank, case, store):
    """What torchrun and the head of a script do."""
    torch.set_num_threads(1)
    name, _, fault = case.partition("-")
    dist.init_process_group("gloo", f"file://{store}", rank=rank, world_size=RANKS[name])
    return PROGRAMS[name][1], fault or None


def record(rank, case, task, out, store, seed):
    """A rank of a case that is recorded."""
    train, fault = start(rank, case, store)
    with accrecord.record(output_dir=os.path.join(out, case), record_level=2 if task == "tensor" else 1):
        train(rank, fault, seed)
    dist.barrier()


def keep(rank, case, out, store, seed):
    """A rank of a case whose weights are kept."""
    train, fault = start(rank, case, store)
    torch.save(train(rank, fault, seed), os.path.join(out, str(rank)))
    dist.barrier()


def weights(case, seed):
    """What the ranks of a case end with."""
    ranks = RANKS[case.partition("-")[0]]
    with tempfile.TemporaryDirectory() as d:
        mp.start_processes(keep, (case, d, os.path.join(d, "store"), seed), ranks, start_method="fork")
        return [torch.load(os.path.join(d, str(r))) for r in range(ranks)]


def piece(whole, like, rank):
    """A rank's part of a weight: of dimensions that are split, the rank's one of their chunks."""
    for dim, (a, b) in enumerate(zip(whole.shape, like.shape)):
        if a != b:
            whole = whole.chunk(a // b, dim)[rank % (a // b)]
    return whole


def off(a, b):
    return (a - b).norm().item() / max(b.norm().item(), 1e-6)


def check_program(name, seed):
    """Its ranks against one process, or each against its own list."""
    whole, ranks = WHOLE[name](seed), weights(name, seed)
    if not whole:
        # Of what each rank draws by itself no one process has the same: the replicas agree.
        whole = ranks[0]
    seen, worst = set(), 0.0
    for r, got in enumerate(ranks):
        right = whole[r] if isinstance(whole, list) else whole
        assert not isinstance(whole, list) or set(right) <= set(got), (name, r, set(right) - set(got))
        for key in set(got) & set(right):
            seen.add(key)
            a, b = got[key], piece(right[key], got[key], r)
            assert a.shape == b.shape, (name, key, r, a.shape, b.shape)
            # What is 0 but for rounding, such as the gradient of a bias before a norm, has no norm.
            error = (a - b).norm().item() / max(b.norm().item(), 1e-2)
            assert error < 1e-5, (name, key, r, error)
            worst = max(worst, error)
    keys = set().union(*whole) if isinstance(whole, list) else set(whole)
    assert seen == keys, (name, keys - seen)
    if name in TOO:
        TOO[name](ranks, seed)
    print(f"{name}: {len(ranks)} ranks, {len(seen)} weights and gradients, at most {worst:.1e} off")
    return ranks


def check(names, seed):
    ranks = {}
    bad = []
    torch.set_num_threads(1)
    for name in names or [*PROGRAMS, *FAULTS]:
        program = FAULTS[name][0] if name in FAULTS else name
        try:
            if program not in ranks:
                ranks[program] = check_program(program, seed)
            if name in FAULTS:
                wrong = weights(f"{program}-{name}", seed)
                moved, key = max((off(got.get(k, torch.zeros_like(v)), v), k)
                                 for got, was in zip(wrong, ranks[program])
                                 for k, v in was.items() if v.norm() > 1e-4)
                assert moved > 1e-3, (name, moved)
                print(f"{program}-{name}: {key} moves by {moved:.1e}")
        except Exception as e:
            bad.append(e)
            print(f"{name}: WRONG {type(e).__name__} {e}", flush=True)
    sys.exit(1 if bad else 0)


def main(*modules):
    """The words of a maker whose programs are those of the modules."""
    for module in modules:
        PROGRAMS.update(module.PROGRAMS)
        WHOLE.update(module.WHOLE)
        FAULTS.update(getattr(module, "FAULTS", {}))
        TOO.update(getattr(module, "TOO", {}))
    RANKS.update((name, ranks) for name, (ranks, _) in PROGRAMS.items())
    if "--check" in sys.argv:
        p = argparse.ArgumentParser()
        p.add_argument("--check", nargs="*")
        p.add_argument("--seed", type=int, default=1)
        a = p.parse_args()
        check(a.check, a.seed)
    command.command_line(FAULTS, record, RANKS)
