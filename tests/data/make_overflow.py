#!/usr/bin/python3
"""Makes dumps of one step that truly overflows in float16: tests/data/dumps/overflow_*.

    overflow_tensor, overflow_stat   msprobe, all op calls
    overflow_check                   msprobe, task overflow_check: only those that overflow
    overflow_ptdbg                   the same two overflows by ptdbg_ascend, a file pair each
    overflow_full, overflow_full_ptdbg   of a device in saturation mode: overflow_check
    overflow_mask                    -Inf that a softmax removes, msprobe, all op calls
    overflow_skipped                 a step that the loss scaler skips, msprobe, all op calls
    overflow_tested, overflow_taken  the program looks for the overflow; a weight takes it all the same
    isinf                            of both infinities, msprobe
"""
import os
import shutil
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
DUMPS = os.path.join(HERE, "dumps")
sys.path.insert(0, HERE)

import torch  # noqa: E402

from recorder import Event  # noqa: E402
from writers import Msprobe, Ptdbg  # noqa: E402

STACK = [("/home/user/train/net.py", 12, "forward", "s = h * h")]
inf = float("inf")


def event(op, args, out, direction="forward", call=0):
    e = Event("api", op, call, direction, stack=STACK)
    e.args, e.output, e.single = args, [out], True
    return e


def half(*v):
    t = torch.tensor(v, dtype=torch.float16)
    t.grad_wanted = False
    return t


x = half(100, 200, 300, 1)
mask = torch.tensor([False, False, True, False])
mask.grad_wanted = False
masked = half(100, 200, -inf, 1)          # asked for
square = half(10000, 40000, inf, 1)       # 300 * 300
nan = square - square                     # inf - inf
nan.grad_wanted = False
events = [event("Tensor.masked_fill", [x, mask], masked), event("Functional.relu", [masked], half(100, 200, 0, 1)),
          event("Tensor.__mul__", [x, x], square), event("Tensor.__sub__", [square, square], nan),
          event("Functional.relu", [nan], nan, call=1), event("Torch.exp", [half(1, 2, 12, 0)], half(2.719, 7.39, inf, 1))]
# Its accumulator overflows; the flag of the device says so.
inside = event("Torch.matmul", [x, x], half(65000))
for name, task in ("tensor", "tensor"), ("stat", "statistics"), ("check", "tensor"):
    folder = os.path.join(DUMPS, "overflow_" + name, "step0", "rank0")
    shutil.rmtree(os.path.join(DUMPS, "overflow_" + name), ignore_errors=True)
    Msprobe(folder, task=task).write([inside, events[2], events[5]] if name == "check" else events)
path = os.path.join(folder, "dump.json")
text = open(path).read().replace('"task": "tensor"', '"task": "overflow_check"')
open(path, "w").write(text)
out = os.path.join(DUMPS, "overflow_ptdbg")
shutil.rmtree(out, ignore_errors=True)
Ptdbg(out, "Torch_matmul_0_forward_1", overflow=True).write([inside])

# In saturation mode Inf becomes 65504 and NaN 0; what came in is as odd as what went out.
most = half(*[65504] * 4)
full = [event("Tensor.__add__", [most, most], most, call=233),
        event("Functional.linear", [half(inf, 1, 2, 3), x], half(65504, 200, 600, 3), call=145),
        event("Tensor.__mul__", [half(inf, inf, inf, inf), half(0, 0, 0, 0)], half(0, 0, 0, 0))]
folder = os.path.join(DUMPS, "overflow_full", "step0", "rank0")
shutil.rmtree(os.path.join(DUMPS, "overflow_full"), ignore_errors=True)
Msprobe(folder, task="tensor").write(full)
path = os.path.join(folder, "dump.json")
text = open(path).read().replace('"task": "tensor"', '"task": "overflow_check"')
open(path, "w").write(text)
out = os.path.join(DUMPS, "overflow_full_ptdbg")
shutil.rmtree(out, ignore_errors=True)
Ptdbg(out, "Tensor___add___233_forward_1", overflow=True).write([full[0]])


def write(name, these):
    shutil.rmtree(os.path.join(DUMPS, name), ignore_errors=True)
    Msprobe(os.path.join(DUMPS, name, "step0", "rank0"), task="tensor").write(these)


scores, low = half(1, 2, 3, -1000), half(0, -65500, 0, -65500)
pushed = (scores.float() + low.float()).half()  # -65500 - 1000 is beyond float16
pushed.grad_wanted = False
assert torch.isinf(pushed).sum() == 1
soft = torch.softmax(pushed.float(), 0).half()
soft.grad_wanted = False
mask = [event("Tensor.__add__", [scores, low], pushed), event("Tensor.view", [pushed], pushed),
        event("Functional.softmax", [pushed], soft), event("Functional.relu", [soft], soft)]
write("overflow_mask", mask)
# The same, and then a real one.
write("overflow_mask_harm", mask + [event("Tensor.__mul__", [x, x], square)])
one = [torch.tensor([v]) for v in (65536.0, 1.0, 0.0)]
for t in one:
    t.grad_wanted = False
scaler = [one[0], torch.tensor([3], dtype=torch.int32), one[1], 2.0, 0.5, 2000]
scaler[1].grad_wanted = False
write("overflow_skipped", [event("Tensor.__mul__", [x, x], square),
                           event("Torch._amp_update_scale_", scaler, one[0])])
write("overflow_kept", [event("Tensor.__mul__", [x, x], square),
                        event("Torch._amp_update_scale_", scaler[:2] + [one[2]] + scaler[3:], one[0])])
least = half(100, -inf, inf, -inf)
write("isinf", [event("Torch.isinf", [least], torch.isinf(least))])
wide, weight, test = square.float(), half(1, 1, 1, 1), torch.isfinite(square)
for t in wide, weight, test:
    t.grad_wanted = False
tested = [event("Tensor.__mul__", [x, x], square), event("Torch.isfinite", [square], test),
          event("Tensor.float", [square], wide), event("Tensor.__rmul__", [wide, 0.5], wide * 0.5)]
write("overflow_tested", tested)
write("overflow_taken", tested + [event("Tensor.__sub__", [weight, square], weight - square)])
