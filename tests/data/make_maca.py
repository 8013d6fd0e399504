#!/usr/bin/python3
"""Makes tests/data/maca: what the recorder of MXMACA might write, at its three levels; its layout
is not public, see accdump(5). And tests/data/maca_backward: two sides, of which the device's gradient
is all zeros; the stacks of backward calls are those of the hook, or (bare) not there. And tests/data/maca_summary: the same by summaries, off by half.

/usr/bin/python3 tests/data/make_maca.py     (Debian 12: python3-torch)
"""
import os
import shutil
import sys
import types

import torch

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "maca")
STACK = ['  File "/w/train.py", line 9, in <module>\n    main()\n',
         '  File "/w/train.py", line 4, in main\n    y = m(x)\n']
HOOK = ['  File "/w/train.py", line 9, in <module>\n    main()\n',
        '  File "/w/train.py", line 5, in main\n    loss.backward()\n',
        '  File "/opt/site-packages/torch/_tensor.py", line 487, in backward\n    torch.autograd.backward(\n',
        '  File "/opt/maca_tools/accuracy.py", line 81, in hook\n    stack = traceback.format_stack()\n']
tools = sys.modules["maca_tools"] = types.ModuleType("maca_tools")
accuracy = sys.modules["maca_tools.accuracy"] = types.ModuleType("maca_tools.accuracy")


class TensorSummary:
    def __init__(self, t):
        self.dtype, self.shape, self.stride = t.dtype, t.shape, t.stride()
        self.max, self.min = t.max().item(), t.min().item()


TensorSummary.__module__, TensorSummary.__qualname__ = "maca_tools.accuracy", "TensorSummary"
accuracy.TensorSummary = TensorSummary


def put(name, obj):
    path = os.path.join(OUT, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    torch.save(obj, path)


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    x = torch.arange(6, dtype=torch.float16).reshape(2, 3) / 4
    y, w = x.t() * 2, torch.ones(3)
    calls = {
        "torch.nn.functional.relu.10.fwd.pt": ((x,), {"inplace": False}, y),
        "torch.nn.Conv1d.6.fwd.pt": ((x, None, 3), {}, (y, [x])),
        "torch.Tensor.add.7.fwd.pt": ((x,), {"other": x, "alpha": 0.5}, y),
        "torch.nn.AdaptiveAvgPool2d.256.bwd.pt": ((w,), {}, (w, None)),
        "torch.nn.Conv1d.9.bwd.pt": ((w,), {}, w),
    }
    for name, (args, kwargs, out) in calls.items():
        put("level2/record_dir/" + name,
            {"stack": STACK, "input": {"args": args, "kwargs": kwargs}, "output": out})
        put("level0/record_dir/" + name, {"stack": "".join(STACK)})
    s = TensorSummary
    put("level1/torch.nn.Conv1d.6.fwd.pt", {"input": (s(x), 3), "output": s(y), "stack": STACK})
    put("level1/torch.relu.7.fwd", {"output": [s(x > 1), s(torch.tensor([1, 5]))]})
    put("ranks/rank_0/torch.relu.0.fwd.pt", {"input": (x,), "output": x})
    put("ranks/rank_1/torch.relu.0.fwd.pt", {"input": (x,), "output": x})
    put("broken/torch.relu.0.fwd.pt", {"input": (x,), "output": x.to_sparse()})
    put("broken/torch.relu.2.fwd.pt", {"input": (x,), "output": Run()})
    put("broken/torch.relu.3.fwd.pt", x)
    put("broken/torch.relu.4.fwd.pt", {"input": (x,), "output": x, "scratch": [x]})
    with open(f"{OUT}/broken/torch.relu.1.fwd.pt", "w") as f:
        f.write("text")


class Run:
    def __reduce__(self):
        return os.system, ("touch /tmp/was-run",)


def backward():
    shutil.rmtree(OUT + "_backward", ignore_errors=True)
    x = torch.arange(1, 7, dtype=torch.float32).reshape(2, 3) / 4
    g = torch.ones(2, 3) / 8
    for side, hook, back in (("device", HOOK, g * 0), ("bench", HOOK, g * 2),
                             ("bare/device", None, g * 0), ("bare/bench", None, g * 2)):
        for name, stack, a, out in (("mul.0.fwd", STACK, x, x * 2), ("mul.0.bwd", hook, g, back)):
            put(f"../maca_backward/{side}/torch.{name}.pt",
                {"input": {"args": (a,), "kwargs": {}}, "output": out, **({"stack": stack} if stack else {})})
    s, w = TensorSummary, x * 3
    for side, back in (("device", w), ("bench", w * 2)):
        for name, a, out in (("relu.0.fwd", x, x), ("mul.1.fwd", x, w), ("mul.1.bwd", g, back)):
            put(f"../maca_summary/{side}/torch.{name}.pt", {"input": (s(a),), "output": s(out)})


if __name__ == "__main__":
    main()
    backward()
