#!/usr/bin/python3
"""Small training steps, each with something that is easily taken for a fault, and with a fault:

    make_steps.py BIN [NAME ...]    writes tests/data/steps again, or those cases of it, by the
                                    programs in BIN

For developers only (Debian 12's python3-torch, python3-numpy, python3-msgpack). The tape and its
noise are those of make_regress.py. tests/data/steps/cases.tsv: case, network, dtype, fault, op
call to name ("-" for none), others that are right.
"""
import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import torch  # noqa: E402

import make_regress as m  # noqa: E402
from make_regress import F, T, Var  # noqa: E402
from writers import Msprobe  # noqa: E402

CASES = {}


def case(name, dtype="fp32", fault="none", want="-", others="", task="tensor", faults=None, tensors=False):
    """tensors: the programs find the elements, too."""
    def put(net):
        CASES[name] = (net, dtype, fault, want, others, task, faults or {}, tensors)
        return net
    return put


# --- where passes meet -------------------------------------------------------------------------
# The first layer is called twice, the recorder leaves out the loss's backward call, and the
# gradients are measured and scaled as clip_grad_norm_ does.

def clipped(w, grads=lambda g: g):
    a, b = w(16, 16), w(16, 16)
    x = w.data(8, 16)
    h = T.tanh(F.linear(T.tanh(F.linear(x, a)), a))
    y = F.linear(h, b).reshape(-1, 16)
    loss = F.cross_entropy(y, w.ints(16, 8))
    m.tape.backward(loss)
    m.tape.events = [e for e in m.tape.events if e.key() != "Functional.cross_entropy.0.backward"]
    for g in grads([Var(m.tape.total(v)) for v in (a, b)]):
        T.norm(g)
        g * 0.25


case("clip", "tf32")(clipped)


@case("clip-lost", "fp32", "lost branch", "Torch.norm.0.forward")
def clip_lost(w):
    """The device hands on what one of the calls gives."""
    def grads(g):
        if m.tape.device:
            e = next(e for e in m.tape.events if e.key() == "Functional.linear.1.backward")
            g[0] = Var(e.output[1])
        return g
    clipped(w, grads)


def clipped_alike(w):
    """What is added in front of a branch whose sum over rows is zero, and what is added behind it, have
    nearly the same gradient: which two calls make up the sum, the bench's rounding does not tell. In TF32
    the branch's gradient does not cancel."""
    a, b, p = w(16), w(16), w(16, 16)
    loss = []
    for i in range(2):
        h = w.data(8, 16) + a
        z = F.linear(h, p)
        y = h + (z - T.mean(z, 0)) + b
        loss.append(F.cross_entropy(T.tanh(y), w.ints(16, 8)))
    m.tape.backward(loss[0] + loss[1])
    for g in [Var(m.tape.total(v)) for v in (a, b)]:
        T.norm(g)


case("clip-alike", "tf32")(clipped_alike)


# --- terms that cancel ---------------------------------------------------------------------------
# The first step of a policy: advantages of mean zero times a ratio of one; and rewards less their
# mean. What is left is the rounding of the terms. With a fault: the device's mean misses a fifth.

def cancelled(w):
    x = w.data(8, 32)
    adv = Var(x.t - x.t.double().mean().to(x.t.dtype))
    h = w.data(8, 32)
    for i in range(3):
        h = T.tanh(F.linear(h, w(32, 32)))
    ratio = T.exp(h * 1e-6)
    gain = (adv * ratio).reshape(-1)
    near = gain - adv.reshape(-1)
    m.tape.backward(T.mean(gain) + T.sum(gain) + T.sum(near.reshape(8, 32), -1).mean())


for task in ("tensor", "statistics"):
    case("cancel-" + task, "tf32" if task == "tensor" else "fp32", task=task)(cancelled)
    case("cancel-lost-" + task, "fp32", "tail", "Torch.mean.0.forward", task=task, faults={
        "Torch.mean.0.forward": ("op", lambda x: x[:200].sum() / 256)})(cancelled)


# --- all of them -------------------------------------------------------------------------------

def side(net, device, dtype, faults):
    m.tape = m.Tape(device, dtype, faults=faults)
    net(m.Weights(7, m.tape.store))
    return m.tape.events


def main():
    programs, names = sys.argv[1], sys.argv[2:] or list(CASES)
    out = os.path.join(HERE, "steps")
    if names == list(CASES):
        shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out, exist_ok=True)
    path = dict(os.environ, PATH=programs + ":" + os.environ["PATH"])
    for name in names:
        net, dtype, fault, want, others, task, faults, tensors = CASES[name]
        with tempfile.TemporaryDirectory() as d:
            for what, f in (("device", faults), ("bench", {})):
                events = side(net, what == "device", dtype, f)
                Msprobe(os.path.join(d, what, "step0", "rank0"), task=task).write(events)
            pipe = f"accdump-read {d}/device | accalign - {d}/bench | accmetric -m {m.METRICS}"
            raw = subprocess.run(pipe, shell=True, check=True, env=path, stdout=subprocess.PIPE).stdout
        m.pack(raw, os.path.join(out, name + ".acc.gz"), "clip" in name, "make_steps.py")
    with open(os.path.join(out, "cases.tsv"), "w") as f:
        for name, (net, dtype, fault, want, others, *_) in CASES.items():
            f.write("\t".join([name, net.__name__, dtype, fault, want, others]) + "\n")


if __name__ == "__main__":
    main()
