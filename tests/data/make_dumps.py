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
import handmade  # noqa: E402
import model  # noqa: E402
import parallel  # noqa: E402
from recorder import Event, Recorder  # noqa: E402
from writers import Msprobe, Ptdbg  # noqa: E402

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


def batch(vocab, seq, seed=11):
    g = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, vocab, (2, seq + 1), generator=g)
    return ids[:, :-1].contiguous(), ids[:, 1:].contiguous()


def run(device, faults, seq=4, **shape):
    """One side's training step: its events."""
    net = network(**shape)
    rec = Recorder(noise=100 if device else None, faults=faults if device else None)
    data = batch(net.emb.num_embeddings, seq)
    with rec.recording(net):
        loss = model.step(net, *data)
    print(f"{'device' if device else 'bench'} loss {loss.item():.7f}")
    return rec.events


def pair(shape, faults):
    """One step on both sides."""
    return {side: run(side == "device", faults, **shape) for side in ("device", "bench")}


def write(root, events, rank="step0/rank0", **how):
    for side, ev in events.items():
        Msprobe(os.path.join(root, side, rank), **how).write(ev)


def forward(events):
    """The API calls of the forward pass."""
    return {side: [e for e in ev if e.kind == "api" and e.direction == "forward"]
            for side, ev in events.items()}


def demo():
    events = pair({}, {("Functional.gelu", 1): gelu_tail})
    write(DEMO, forward(events))


def msprobe():
    """One run in all tasks: tensor, statistics, md5."""
    events = pair(SMALL, {("Functional.gelu", 0): gelu_tail})
    write(DUMPS + "/msprobe_tensor", events)
    write(DUMPS + "/msprobe_stat", events, task="statistics")
    write(DUMPS + "/msprobe_md5", forward(events), task="md5")
    expect.both("msprobe_tensor", events)


def scale_tail(args, y):
    """The last channels 3 % too large."""
    return torch.cat([y[..., :-1], y[..., -1:] * 1.03], dim=-1)


def other_msprobe():
    events = pair(SMALL, {("Functional.gelu", 0): gelu_tail})
    bench = events["bench"]
    write(DUMPS + "/msprobe_mix", events, task="statistics",
          level="mix")
    one = DUMPS + "/{}/step0/rank0"
    modules = [e for e in bench if ".layers." not in e.op]
    Msprobe(one.format("msprobe_L0"), level="L0", megatron=True).write(modules)
    Msprobe(one.format("msprobe_old"), task="statistics", level="mix",
            old=True).write([e for e in bench if e.direction != "backward"])
    x = torch.linspace(-1, 1, 6).reshape(2, 3)
    Msprobe(one.format("msprobe_debug"), level="debug").debug({
        "x.0.debug": x, "x.1.debug": 2 * x, "hidden.0.debug": [x[0], [x[1], {"k": x[:, :1]}]],
        "note.0.debug": 7, "x_grad.0.debug": torch.ones(2, 3)})


def mindspore():
    """Functional becomes MintFunctional, Module becomes Cell, .pt becomes .npy."""
    side = {}
    for k, ev in pair(SMALL, {("Functional.gelu", 0): gelu_tail}).items():
        ev = [e for e in ev if e.direction == "forward" and
              (".layers.0.mlp" in (e.parent or e.key()) or e.op == "Functional.embedding")]
        x = ev[-1].output[0]
        prim = Event("api", "Primitive.layers.0.cast.Cast", 0, "forward")
        prim.args, prim.output = [x, "BFloat16"], [x.bfloat16()]
        side[k] = ev + [prim]
    write(DUMPS + "/mindspore", side, level="mix", mindspore=True)


def ranks():
    """Two steps on two ranks; rank 1 of the device is at fault. Also with proc folders."""
    def save(side, step, rank, events):
        def to(name, who):
            Msprobe(f"{DUMPS}/{name}/{side}/step{step}/{who}", task="statistics",
                    extra_info=False).write(events)
        to("msprobe_ranks", f"rank{rank}")
        if side == "device" and step == 0:
            to("msprobe_procs", f"proc{4711 + rank}")
    parallel.run({("Functional.linear", 0): scale_tail}, save)


def ptdbg():
    events = pair(SMALL, {("Functional.gelu", 0): gelu_tail})
    calls = forward(events)
    root = DUMPS + "/ptdbg_"
    for side, ev in events.items():
        Ptdbg(f"{root}v4/{side}/ptdbg_dump_v4.0/rank0", "api_stack_dump",
              mode="api_stack").write(calls[side])
        Ptdbg(f"{root}md5/{side}/ptdbg_dump_v4.0/rank0", "dump", summary="md5").write(ev)
    bench = events["bench"]
    Ptdbg(f"{root}v1", "npu_dump", version=1,
          data=f"{root}v1/npu_dump_20230703104808").write(bench)
    Ptdbg(f"{root}v6/ptdbg_dump_v6.0/step0/rank0", "dump", version=6).write(calls["bench"])
    Ptdbg(f"{root}summary/ptdbg_dump_v4.0/step2/rank0", "dump", summary="summary").write(bench)
    Ptdbg(f"{root}stack/ptdbg_dump_v4.0/rank0", "stack_dump", mode="stack").write(bench[:6])
    add = [e for e in bench if e.op == "Tensor.__add__"][:1]
    Ptdbg(f"{root}overflow", "Tensor___add___0_forward_1", overflow=True).write(add)


def main():
    torch.set_num_threads(1)
    for d in (f"{DEMO}/device", f"{DEMO}/bench", DUMPS):
        shutil.rmtree(d, ignore_errors=True)
    os.makedirs(expect.DIR)
    demo()
    msprobe()
    other_msprobe()
    mindspore()
    ranks()
    ptdbg()
    handmade.leaves(DUMPS + "/leaves/step0/rank0")
    handmade.views(DUMPS + "/views", expect.DIR)
    handmade.npys(DUMPS + "/npy")
    handmade.broken(DUMPS + "/broken")


if __name__ == "__main__":
    main()
