"""The scripts of the manuals of both recorders, as they stand but for device and dtype, which are mapped to what a CPU
can do, in folders of OUT. Needs torch.

Usage: documents.py OUT

maca_tools' manual has two examples, which stand here as they stand there. That of ptdbg_ascend's, the account
of a port of ChatGLM, tells in words what was called and what was found; its script is written after it."""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
MACA = '''
import torch
import torch.nn as nn
import copy
from maca_tools import accuracy

dtype = torch.float16
shape, out_c, k, s, p, d, g = (256, 1, 3600), 4, 5, 1, 2, 1, 1
input = torch.randn(shape, dtype = dtype, device="cpu")
input_d = input.clone().cuda()
m = nn.Conv1d(shape[1], out_c, k, stride = s, padding = p, dilation = d, groups = g, dtype = dtype)
m_d = copy.deepcopy(m)
m_d = m_d.to("cuda")
accuracy.start_record(record_level=2)
output = m_d(input_d)
accuracy.record_switch(False)
'''
MACA_SKIP = MACA.replace("record_level=2", 'record_level=2, skip=10, op_range=[None, "torch.nn.Conv1d.6.fwd"]')
# Its steps: record on both devices, then gen_report.
MACA_REPORT = "import torch\ntorch.manual_seed(1)\n" + MACA.replace(
    "record_level=2", 'True, "{out}", record_level=2').replace("m_d(input_d)", "m_d(input_d) * {factor}")
GEN_REPORT = '''
from maca_tools import accuracy
accuracy.gen_report("device0", "device1", "report")
'''
PTDBG = '''
import torch
import torch.nn.functional as F
from ptdbg_ascend import *

seed_all(seed=1234, mode=True)
set_dump_path("./{out}")


@torch.jit.script
def gelu(x):
    return 0.5 * x * (1.0 + torch.tanh(0.79788456 * x * (1.0 + 0.044715 * x * x)))


class Rotary(torch.nn.Module):
    def __init__(self, dim, base=10000):
        super().__init__()
        self.register_buffer("inv_freq", 1. / (base ** (torch.arange(0, dim, 2).float().npu() / dim)) * {off})

    def forward(self, length):
        t = torch.arange(length, dtype=self.inv_freq.dtype)
        return torch.einsum("i,j->ij", t, self.inv_freq)


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rotary, self.linear, self.drop = Rotary(8), torch.nn.Linear(4, 4), torch.nn.Dropout(p=0.0)

    def forward(self, x):
        x = x.permute(1, 0, 2)
        angle = self.rotary(x.shape[1])
        x = self.linear(x * angle.cos() + x * angle.sin())
        return self.drop(gelu(x))[:, 1:]


model = Block().npu()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
register_hook(model, {hook})
for step in range(2):
    set_dump_switch("ON", mode="all")
    loss = F.mse_loss(model(torch.randn(6, 2, 4).npu(){large}), torch.zeros(2, 5, 4).npu())
    loss.backward()
    set_dump_switch("OFF")
    opt.step()
'''


def mapped(script):
    for a, b in (("torch.float16", "torch.float32"), ("cuda", "cpu"), (".npu()", ".cpu()")):
        script = script.replace(a, b)
    return script


def sh(command):
    done = subprocess.run(["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout.decode(errors="replace")


def runs(name, script, fails=False):
    """Each in a folder of its own."""
    os.makedirs(name, exist_ok=True)
    env = dict(os.environ, PYTHONPATH=os.path.join(HERE, "../../python"))
    with open(os.path.join(name, "script.py"), "w", encoding="utf-8") as f:
        f.write(mapped(script))
    done = subprocess.run([sys.executable, "-m", "accrecord", "script.py"], cwd=name, env=env, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said = done.stdout.decode(errors="replace")
    assert (done.returncode != 0) == fails, said
    return said


def keys(folder):
    return sh(f"accdump-read {folder} | accfmt --tsv -c key | tail -n +2 | uniq")[1].split()


def maca():
    assert "accrecord" not in runs("level2", MACA)
    status, text = sh("accdump-read level2/record_dir | accfmt --tsv -c name,dtype,shape")
    assert status == 0 and "Functional.conv1d.0.forward.output.0\tf32\t[256, 4, 3600]" in text, text
    # Ten of eleven op calls are left out, and there is one.
    assert "of 1 op calls op_range, op_list, skip" in runs("skip", MACA_SKIP)
    assert "record_dir/rank0.acc: a recording is there already: File exists: delete it, or name another folder" in \
        runs("level2", MACA, fails=True)
    for out, factor in ("device0", 1), ("device1", 1.5):
        runs("both", MACA_REPORT.format(out=out, factor=factor))
    said = runs("both", GEN_REPORT)
    assert "accrecord" not in said or "no compare_result.xlsx" in said, said
    with open("both/report/report.txt", encoding="utf-8") as f:
        said = f.read()
    assert "Tensor.mul.0.forward" in said, said
    assert os.path.getsize("both/report/compare_result.csv") > 0


def ptdbg():
    # One CPU computes the frequencies otherwise.
    for out, off in ("npu", 1.0001), ("gpu", 1), ("again", 1.0001):
        runs("glm", PTDBG.format(out=out, off=off, hook="acc_cmp_dump", large=""))
    assert sh("accdiff glm/npu glm/again")[0] == 0
    got = keys("glm/npu")
    for key in ("Script.gelu.0.forward", "Torch.einsum.0.forward", "Tensor.permute.0.forward",
                "Functional.dropout.0.forward", "Tensor.__getitem__.0.backward", "Functional.mse_loss.0.backward"):
        assert key in got, (key, got)
    # They were computed before: einsum is where they arrive.
    status, text = sh("accdiff glm/npu glm/gpu")
    assert status == 1 and "Torch.einsum.0.forward: input 2 is off" in text and "a constant" in text, text
    said = runs("flow", PTDBG.format(out="npu", off=1, hook="overflow_check, overflow_nums=1",
                                     large=" * 3e38"), fails=True)
    assert "OverflowStop" in said and "overflow number 1" in said, said
    assert len(keys("flow/npu")) == 1, keys("flow/npu")


if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    os.chdir(sys.argv[1])
    maca()
    ptdbg()
