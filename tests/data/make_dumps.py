#!/usr/bin/python3
"""Makes the dumps that the tests and the demo read: examples/demo/{device,bench} and
tests/data/dumps/*. For developers only: neither building nor testing runs it.

Needs Debian 12's python3-torch (1.13.1) and python3-numpy. The same machine gives the same
bytes every time; another kind of CPU may round differently. See README.md beside this file.
"""
import math
import os
import shutil
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
DEMO = os.path.normpath(os.path.join(HERE, "../../examples/demo"))
DUMPS = os.path.join(HERE, "dumps")
sys.path[:0] = [HERE, DEMO]

import torch  # noqa: E402

import expect  # noqa: E402
import model  # noqa: E402
from recorder import Recorder  # noqa: E402
from writers import Msprobe  # noqa: E402

SMALL = dict(dim=4, layers=1, heads=0, vocab=7, seq=3)
TAIL = 4  # channels of the device's faulty vector tail


def gelu_tail(args, y):
    """GELU whose last channels, the tail of a vector loop, have a mistyped digit: 0.044715
    became 0.144715. They are off by 3 %."""
    x = args[0]
    bad = 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.144715 * x * x * x)))
    return torch.cat([y[..., :-TAIL], bad[..., -TAIL:]], dim=-1)


def network(seed=7, **shape):
    torch.manual_seed(seed)
    net = model.Model(**shape)
    with torch.no_grad():
        for p in net.parameters():
            if p.dim() == 1:
                p.add_(0.1 * torch.randn(p.shape))
    return net


def batch(vocab, seq=6, seed=11):
    g = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, vocab, (2, seq + 1), generator=g)
    return ids[:, :-1].contiguous(), ids[:, 1:].contiguous()


def run(device, faults=None, seq=6, steps=1, **shape):
    """One side's training steps: a list of events for each."""
    net = network(**shape)
    vocab, out = net.emb.num_embeddings, []
    for s in range(steps):
        rec = Recorder(noise=100 + s if device else None, faults=faults if device else None)
        data = batch(vocab, seq)
        with rec.recording(net):
            loss = model.step(net, *data)
        print(f"step {s} {'device' if device else 'bench'} loss {loss.item():.7f}")
        out.append(rec.events)
    return out


def pair(shape, faults):
    """One step on both sides."""
    return {side: run(side == "device", faults, **shape)[0] for side in ("device", "bench")}


def write(root, events, rank="step0/rank0", **how):
    for side, ev in events.items():
        Msprobe(os.path.join(root, side, rank), **how).write(ev)


def demo():
    events = pair({}, {("Functional.gelu", 1): gelu_tail})
    write(DEMO, {k: [e for e in ev if e.direction == "forward"] for k, ev in events.items()})


def msprobe():
    """One run in all tasks: tensor, statistics, md5."""
    events = pair(SMALL, {("Functional.gelu", 0): gelu_tail})
    write(DUMPS + "/msprobe_tensor", events)
    write(DUMPS + "/msprobe_stat", events, task="statistics")
    write(DUMPS + "/msprobe_md5", events, task="md5")
    expect.both("msprobe_tensor", events)


def main():
    torch.set_num_threads(1)
    for d in (f"{DEMO}/device", f"{DEMO}/bench", DUMPS):
        shutil.rmtree(d, ignore_errors=True)
    os.makedirs(expect.DIR)
    demo()
    msprobe()


if __name__ == "__main__":
    main()
