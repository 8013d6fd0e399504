"""Records small things into folders of OUT, and checks what Python sees of it. Needs torch.

Usage: small.py OUT [FUNCTION...]"""
import functools
import multiprocessing
import os
import subprocess
import sys
import threading
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

import nets  # noqa: E402
from nets import accrecord  # noqa: E402

OUT = sys.argv[1]
torch.set_num_threads(1)


def folder(name):
    return os.path.join(OUT, name)


def keys(name, *options):
    """The op calls of a recording, each once, in their order."""
    accrecord._replace(None)
    text = subprocess.run("accdump-read " + " ".join(options) + " " + folder(name) +
                          " | accfmt --tsv -c key | tail -n +2 | uniq", shell=True, check=True,
                          stdout=subprocess.PIPE).stdout.decode()
    return text.split()


def refuses(kind, fn, word):
    try:
        fn()
    except kind as e:
        assert word in str(e), e
    else:
        raise AssertionError(f"{word}: not refused")


def networks():
    online = {"keep": 1, "bench": folder("one")}
    for name, fault, options in (
            ("one", None, {}), ("two", None, {}), ("msprobe", None, {"layout": "msprobe"}),
            ("forward", "Functional.gelu.0.forward", {}), ("backward", "Functional.linear.1.backward", {}),
            ("clean", None, online), ("bad", "Functional.gelu.1.forward", online),
            ("alone", "Functional.gelu.1.forward", {"keep": 1})):
        accrecord.seed_all(3)
        net = nn.Sequential(nn.Linear(4, 6), nn.GELU(), nn.Linear(6, 2))
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        wrong = nets.Fault(fault) if fault else None
        if wrong:
            wrong.__enter__()
        accrecord.start_record(output_dir=folder(name), **options)
        for _ in range(2):
            loss = F.mse_loss(net(torch.randn(5, 4)), torch.randn(5, 2))
            opt.zero_grad()
            loss.backward()
            opt.step()
        if "keep" in options:
            accrecord.step()   # the next, of which nothing comes
        accrecord.record_switch(False)
        accrecord._replace(None)
        if wrong:
            wrong.__exit__(None, None, None)
    accrecord.gen_report(folder("one"), folder("two"), folder("same"))
    assert accrecord.gen_report(folder("one"), folder("forward"), folder("report")) == 1


def documents():
    """The example of start_record's own document, with a CPU's dtype."""
    dtype = torch.float32
    shape, out_c, k, s, p, d, g = (2, 1, 36), 4, 5, 1, 2, 1, 1
    x = torch.randn(shape, dtype=dtype, device="cpu")
    m = nn.Conv1d(shape[1], out_c, k, stride=s, padding=p, dilation=d, groups=g, dtype=dtype)
    accrecord.start_record(record_level=2, output_dir=folder("conv"))
    m(x)
    accrecord.record_switch(False)
    assert keys("conv") == ["Functional.conv1d.0.forward"], keys("conv")
    accrecord.start_record(record_level=2, skip=1, op_range=[None, "torch.nn.Conv1d.6.fwd"],
                           output_dir=folder("skip"))
    for _ in range(9):
        m(x)
    accrecord.record_switch(False)
    assert keys("skip") == [f"Functional.conv1d.{i}.forward" for i in (1, 3, 5)], keys("skip")


def work():
    x = torch.ones(2, 3, requires_grad=True)
    (torch.relu(x * 2) + 1).sum().backward()


def choices():
    for level in (0, 1):
        with accrecord.record(output_dir=folder(f"level{level}"), record_level=level):
            work()
    assert keys("level0")[:2] == ["Tensor.mul.0.forward", "Torch.relu.0.forward"] or \
        keys("level0")[:2] == ["Tensor.mul.0.forward", "Functional.relu.0.forward"], keys("level0")
    for name, options, want in (
            ("list", {"op_list": ["relu"]}, ["forward", "backward"]),
            ("outputs", {"op_list": ["torch.mul"], "record_input": False}, ["forward", "backward"])):
        with accrecord.record(output_dir=folder(name), **options):
            work()
        assert [k.rsplit(".", 1)[1] for k in keys(name)] == want, keys(name)

    @accrecord.record(output_dir=folder("range"), op_range=["Tensor.add.0.forward", None])
    def decorated():
        work()
    decorated()
    assert keys("range", "-p forward") == ["Tensor.add.0.forward", "Tensor.sum.0.forward"]
    refuses(ValueError, lambda: accrecord.start_record(op_range=["conv"]), "two names")
    refuses(ValueError, lambda: accrecord.start_record(op_range=["conv", None]), "torch.nn.Conv1d.6")
    refuses(ValueError, lambda: accrecord.start_record(record_level=3), "record_level")
    refuses(ValueError, lambda: accrecord.start_record(bench=OUT), "keep")
    refuses(ValueError, lambda: accrecord.start_record(keep=1, record_level=1), "record_level 2")
    refuses(accrecord.RecordError, lambda: accrecord.start_record(output_dir=folder("bad"), keep=1),
            "a recording is there already")
    refuses(accrecord.RecordError, lambda: accrecord.start_record(output_dir=folder("conv")),
            "a recording is there already")


def ranges():
    """A range is one of time: backward calls run from the last to the first; and a backward call comes with
    its forward call."""
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))
    calls = ["linear.0", "relu.0", "linear.1", "tanh.0", "linear.2"]
    for i, (op_range, forward, backward) in enumerate((
            (["torch.nn.ReLU.1.fwd", "torch.nn.Tanh.3.fwd"], [1, 2], [2, 1]),
            (["torch.nn.Tanh.3.bwd", "torch.nn.ReLU.1.bwd"], [2, 3], [3, 2]),
            (["torch.nn.Linear.2.fwd", "torch.nn.Tanh.3.bwd"], [2, 3, 4], [4]),
            (["torch.nn.ReLU.1.bwd", None], [0, 1, 5, 6, 7, 8, 9], [1, 0, 9, 8, 7, 6, 5]),
            (["Functional.linear.1.backward", "Functional.relu.0.backward"], [2], [2]),
            ([None, "Functional.linear.1.backward"], [0, 1, 2, 3, 4], [4, 3]),
            (["Functional.relu.0.forward", "Torch.tanh.0.forward"], [1, 2], [2, 1]))):
        name = f"range{i}"
        with accrecord.record(output_dir=folder(name), op_range=op_range, record_level=1):
            for _ in range(2):
                net(torch.randn(4, 2)).backward(torch.ones(4, 1))
                accrecord.step()
        for which, want in ("forward", forward), ("backward", backward):
            got = [".".join(k.split(".")[-3:-1]) for k in keys(name, "-p", which)] if want else []
            assert got == [calls[n % 5] for n in want], (op_range, which, got)
    # Gradients of the parameters that these calls have, no others.
    assert keys("range0", "-p grad") == ["Module.2.Linear.parameters_grad.0"], keys("range0", "-p grad")


def ranks():
    """A script is the same on each rank, also on those that are not recorded."""
    dist = torch.distributed
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group("gloo", init_method="file://" + folder("meet"), rank=0, world_size=1)
    for name, options, want in (("rank0", {"ranks": [0]}, 1), ("rank1", {"ranks": [1, 2]}, 0),
                                ("group", {"process_group": dist.new_group([0]), "ranks": [0]}, 1)):
        accrecord.start_record(enabled=False, output_dir=folder(name), **options)
        accrecord.record_switch(True)
        torch.ones(2) + 1
        accrecord.step()
        accrecord.record_switch(False)
        accrecord._replace(None)
        assert os.path.exists(folder(name)) == bool(want), name
    dist.destroy_process_group()


def exported():
    """from accrecord import * brings what a script calls, and nothing that it may have itself."""
    names = {}
    exec("from accrecord import *", names)   # pylint: disable=exec-used
    assert sorted(k for k in names if k[0] != "_") == sorted(
        "start_record record record_switch gen_report step seed_all set_dump_path set_dump_switch register_hook "
        "acc_cmp_dump overflow_check RecordError OverflowStop".split()), names.keys()


def steps():
    """A step may be named before it begins, and again."""
    for name, options in (("steps", {}), ("steps-online", {"keep": 1})):
        with accrecord.record(output_dir=folder(name), **options):
            for n in (0, 0, 3, 3):
                accrecord.step(n)
                torch.ones(2) + n
        if name == "steps":
            assert [keys(name, "-s", str(n)) for n in (0, 3)] == \
                2 * [["Tensor.add.0.forward", "Tensor.add.1.forward"]], keys(name)
        else:
            with open(folder(name + "/rank0.judged"), encoding="utf-8") as f:
                assert f.read().splitlines()[1:] == ["0\t0\t", "3\t0\t"], "judged otherwise"


def built():
    """A part that is called as the model is built, as parametrizations are, begins no step; x.T is an op call."""
    with accrecord.record(output_dir=folder("built")):
        net = nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4)), nn.Linear(4, 2))
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            opt.zero_grad()
            (net(torch.ones(2, 4)) @ torch.ones(3, 2).T).sum().backward()
            opt.step()
    assert keys("built", "-s 2", "-o Tensor.T") == ["Tensor.T.0.forward"], keys("built")
    assert keys("built", "-s 2", "-o Functional.sgd") == ["Functional.sgd.0.forward"], keys("built")


def numbers():
    """A number counts, and that another op call has it than its name says is told; a name may stand alone."""
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    for i, (options, want, told) in enumerate((
            ({"op_list": "relu"}, ["Functional.relu.0.forward"], []),
            ({"op_list": ["torch.nn.ReLU.1.fwd"]}, ["Functional.relu.0.forward"], []),
            ({"op_list": ["torch.Tensor.__add__.2.fwd"]}, ["Tensor.add.0.forward"], []),
            ({"op_range": ["torch.nn.Tanh.1.fwd", None]}, ["Functional.relu.0.forward", "Tensor.add.0.forward"],
             ["accrecord: op call number 1 is Functional.relu, not torch.nn.Tanh"]))):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            with torch.no_grad(), accrecord.record(output_dir=folder(f"numbers{i}"), **options):
                net(torch.ones(1, 2)) + 1
        assert [str(w.message) for w in said] == told, said
        assert keys(f"numbers{i}") == want, keys(f"numbers{i}")


def nothing():
    """That nothing is recorded is said."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        accrecord.start_record(output_dir=folder("none"), skip=10)
        torch.ones(2) + 1
        accrecord.record_switch(False)
        accrecord._replace(None)
        accrecord.start_record(output_dir=folder("never"))
        accrecord.record_switch(False)
        accrecord._replace(None)
    said = [str(w.message) for w in said]
    assert len(said) == 2 and "of 1 op calls op_range, op_list, skip, scope and api_list let none" in said[0] \
        and "no op call was seen" in said[1], said


def ptdbg():
    net = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    accrecord.seed_all()
    accrecord.set_dump_path(folder("ptdbg"))
    accrecord.register_hook(net, accrecord.acc_cmp_dump)
    accrecord.set_dump_switch("ON", mode="range",
                              scope=["Functional_linear_0_forward", "Functional_linear_1_forward"])
    for _ in range(3):
        net(torch.randn(2, 3))
    accrecord.set_dump_switch("OFF")
    assert keys("ptdbg") == ["Functional.linear.0.forward", "Functional.relu.0.forward",
                             "Functional.linear.1.forward"], keys("ptdbg")
    # A backward call may be named, as its overflow is; also as the ends of a range, in the order of time.
    for i, (mode, scope, want) in enumerate((
            ("list", ["Functional_linear_1_backward"], ["linear.1"]),
            ("list", ["Functional.relu.0.backward"], ["relu.0"]), ("list", ["Functional.linear.1"], ["linear.1"]),
            ("range", ["Functional_linear_1_backward", "Functional_relu_0_backward"], ["relu.0", "linear.1"]))):
        accrecord.set_dump_path(folder(f"backward{i}"))
        accrecord.set_dump_switch("ON", mode=mode, scope=scope)
        for _ in range(2):
            net(torch.randn(2, 3)).sum().backward()
        accrecord.set_dump_switch("OFF")
        got = sorted(k for k in keys(f"backward{i}") if k.startswith("Functional"))
        assert got == sorted(f"Functional.{k}.{p}" for k in want for p in ("forward", "backward")), (scope, got)
    accrecord.set_dump_path(folder("stack"))
    accrecord.set_dump_switch("ON", mode="api_stack")
    net(torch.randn(2, 3))
    accrecord.set_dump_switch("OFF")
    assert keys("stack", "-k call") == ["Functional.linear.0.forward", "Functional.relu.0.forward"]
    accrecord.register_hook(net, accrecord.acc_cmp_dump)
    for i, (mode, want) in enumerate((
            (["forward"], ["forward.in", "forward.out"]), (["backward"], ["backward.in", "backward.out"]),
            (["output"], ["forward.out", "backward.out"]),
            (["backward", "input"], ["forward.in", "backward.in", "backward.out"]))):
        accrecord.set_dump_path(folder(f"parts{i}"))
        accrecord.set_dump_switch("ON", mode="api_list", api_list=["relu"], dump_mode=mode, filter_switch="ON")
        net(torch.randn(2, 3)).sum().backward()
        accrecord.set_dump_switch("OFF")
        accrecord._replace(None)
        got = subprocess.run(f"accdump-read {folder(f'parts{i}')} | accfmt --tsv -c kind,pass,io | tail -n +2 | "
                             "sort -u", shell=True, check=True, stdout=subprocess.PIPE).stdout.decode()
        assert sorted(got.split("\n")[:-1]) == sorted("tensor\t" + w.replace(".", "\t") for w in want), (mode, got)
    refuses(ValueError, lambda: accrecord.set_dump_switch("ON", dump_mode=["inputs"]), "dump_mode")
    refuses(ValueError, lambda: accrecord.set_dump_switch("ON", mode="acl"), "Ascend")
    refuses(ValueError, lambda: accrecord.set_dump_switch("ON", mode="alle"), "none of")
    accrecord.set_dump_path(folder("overflow"))
    accrecord.register_hook(net, accrecord.overflow_check, overflow_nums=2)
    x, n = torch.ones(3), 0
    try:
        for n in range(5):
            y = x * 2
            y = y * float("inf") if n % 2 else torch.full((3,), 65504., dtype=torch.float16) * 1
    except accrecord.OverflowStop as e:
        assert "overflow number 2" in str(e), e
    assert n == 1 and len(keys("overflow")) == 2, (n, keys("overflow"))


def arguments():
    """What operators overwrite is recorded as it arrives; what audits need is there."""
    with accrecord.record(output_dir=folder("arguments")):
        x = torch.arange(6.).view(2, 3)
        x.add_(1, alpha=2)
        out = torch.empty(2, 3)
        torch.mul(x, 3, out=out)
        where = torch.full((2,), 2**62)
        torch.max(out, 1, out=(torch.empty(2), where))
        base = torch.ones(2, 3, requires_grad=True) * 1
        base[0].mul_(2)
        base[:, 1:] = x[:, 1:]
        score = torch.randn(2, 3, requires_grad=True).masked_fill(
            torch.tensor([[0, 1, 1], [0, 0, 1]]).bool(), float("-inf"))
        y = F.softmax(score, dim=-1)
        value, where = torch.max(y, dim=1)
        (value.sum() + (y * y).sum() + base.sum() + F.dropout(y, 0.0).sum()).backward()
        torch.einsum("ij,kj->ik", x, x)
        F.conv2d(torch.randn(1, 2, 5, 5), torch.randn(4, 1, 3, 3), padding="same", groups=2)


def negative():
    for name, options in (("negative", {}), ("negative1", {"record_level": 1}),
                          ("negative-msprobe", {"record_level": 1, "layout": "msprobe"})):
        with accrecord.record(output_dir=folder(name), **options):
            torch.full((3,), -1.5).sum() * 2


def halves():
    """Under autocast the gradient of a weight in f32 is computed in f16, where it may overflow."""
    for n in 16, 700:
        for name in "halves", "halves-wrong":
            torch.manual_seed(0)
            x, w, g = torch.randn(n, n), torch.randn(n, n), torch.randn(n, n) * 2000
            g[:, :2] = 8000 * x[:, :1].sign()
            half, to = [t.half().double() for t in (x, w, g)], lambda t: t.float().half()
            gw = to(half[2].t() @ half[0]).float()
            assert 0 < torch.isinf(gw).sum()
            if "wrong" in name:
                gw[gw.abs().argmin() // n, gw.abs().argmin() % n] = float("inf")
            passes = (("forward", [x, w], [to(half[0] @ half[1].t())]),
                      ("backward", [g.half()], [to(half[2] @ half[1]), gw]))
            accrecord.start_record(output_dir=folder(f"{name}{n}"))
            for direction, ins, outs in passes:
                accrecord._now.emit("Functional.linear", 0, direction, [
                    (io, str(i), v) for io, of in (("in", ins), ("out", outs)) for i, v in enumerate(of)])
            accrecord._replace(None)


def scaled():
    """What GradScaler does with gradients; on a CPU, of newer PyTorch alone."""
    grads, found = [torch.full((2,), 8.0), torch.full((3,), float("inf"))], torch.zeros(1)
    unscale = torch._amp_foreach_non_finite_check_and_unscale_
    with accrecord.record(output_dir=folder("scaled")):
        torch.ones(1) * 2
        try:
            unscale(grads, found, torch.full((1,), 0.5))
        except NotImplementedError:
            return
    text = subprocess.run(f"accdump-read -o Torch._amp_foreach* {folder('scaled')} | accmetric | "
                          "accfmt --tsv -c name,s.max", shell=True, check=True, stdout=subprocess.PIPE).stdout
    name = "Torch._amp_foreach_non_finite_check_and_unscale_.0.forward."
    got = dict(line.split("\t") for line in text.decode().splitlines() if line.startswith(name))
    assert got[name + "input.0.0"] == "8.0" and got[name + "output.0.0"] == "4.0" and \
        got[name + "output.1"] == "1.0", got


class Checkpointed(nn.Module):
    def __init__(self, how):
        super().__init__()
        self.how = how
        self.part = nn.Sequential(nn.Linear(4, 4), nn.GELU(), nn.Linear(4, 4))

    def forward(self, x):
        for _ in range(2):
            x = self.part(x) if self.how is None else torch.utils.checkpoint.checkpoint(self.part, x, **self.how)
        return x


def three_steps(name, how, stack=True, wrong=False):
    torch.manual_seed(0)
    net = Checkpointed(how)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    with accrecord.record(output_dir=folder(name), record_stack=stack):
        for step in range(3):
            if wrong and step == 1:
                net.part[2].weight.data.mul_(1.5)
            net(torch.ones(2, 4, requires_grad=True)).sum().backward()
            opt.step()
            opt.zero_grad()
    accrecord._replace(None)


def checkpoints():
    """Each kind of checkpointing, however its second run ends: the steps are there, each backward call once, and the
    second run, which begins with the last part, is marked."""
    hows = {"late": {"use_reentrant": False}, "reentrant": {"use_reentrant": True}}
    if hasattr(torch.utils.checkpoint, "set_checkpoint_early_stop"):
        hows["early"] = dict(hows["late"])
        hows["late"]["early_stop"] = False
    three_steps("checkpoints-none", None)
    first, again = ([f"Functional.{op}.{i}.forward" for op, i in part] for part in (
        (("linear", 0), ("gelu", 0), ("linear", 1), ("linear", 2), ("gelu", 1), ("linear", 3)),
        (("linear", 4), ("gelu", 2), ("linear", 5), ("linear", 6), ("gelu", 3), ("linear", 7))))
    for how, options in hows.items():
        three_steps(f"checkpoints-{how}-wrong", options, wrong=True)
        # The part that runs again first is the last one. With use_reentrant backward calls are those of the second run.
        ran = again if how == "reentrant" else first[3:] + first[:3]
        back = [k.replace("forward", "backward") for k in ran[2::-1] + ran[:2:-1]]
        for name, stack in (f"checkpoints-{how}", True), (f"checkpoints-{how}-bare", False):
            three_steps(name, options, stack)
            text = subprocess.run(f"accdump-read {folder(name)} | accfmt --tsv -c step,key,recompute,scope", shell=True,
                                  check=True, stdout=subprocess.PIPE).stdout.decode()
            rows = [line.split("\t") for line in text.splitlines()[1:]]
            for step in "012":
                here = [r for r in rows if r[0] == step]
                for want, word, marked in (
                        (first + ["Tensor.sum.0.forward", "Functional.sgd.0.forward"], "forward", False),
                        (again, "forward", True), (["Tensor.sum.0.backward"] + back, "backward", False)):
                    got = list(dict.fromkeys(r[1] for r in here if r[1].endswith(word) and (r[2] == "true") == marked))
                    assert got == want, (name, step, got)
            scopes = {r[3] for r in rows if r[1] == "Functional.gelu.3.forward"}
            assert scopes == {"Module.part.1.GELU.forward.3"}, scopes


def cells():
    """Of an LSTM's cell, one of whose outputs is made of the other, what arrives at each from outside."""
    for name, which in ("cells", (1, 2)), ("cells-h", (1, 0)), ("cells-c", (0, 1)):
        cell, x, state, got = nn.LSTMCell(3, 4).double(), torch.randn(3, 2, 3).double(), None, []
        with accrecord.record(output_dir=folder(name)):
            for t in range(3):
                state = cell(x[t], state)
                state = [s * 1 for s in state]   # what arrives at these came from outside
                got.append(sum(w * s for w, s in zip(which, state) if w))
                for s in state:
                    s.retain_grad()
                got.append(state)
            sum((y * y).sum() for y in got[::2]).backward()
        text = subprocess.run(f"accdump-read -p backward -i in -o Torch.lstm_cell {folder(name)} | accmetric | "
                              "accfmt --tsv -c name,s.norm", shell=True, check=True, stdout=subprocess.PIPE).stdout.decode()
        seen = dict(line.split("\t") for line in text.splitlines())
        for t, states in enumerate(got[1::2]):
            for i, s in enumerate(states):
                norm = seen[f"Torch.lstm_cell.{t}.backward.input.{i}"]
                assert norm == "" if s.grad is None else abs(float(norm) / float(s.grad.norm()) - 1) < 1e-12, (name, t, i)


def aliases():
    """A function with several names in torch is called as its operator is."""
    with accrecord.record(output_dir=folder("aliases")):
        x = torch.eye(3)
        torch.mm(x, x)
        torch.sspaddmm(x.to_sparse(), x.to_sparse(), x)
        abs(-x).positive()
    assert [k for k in keys("aliases", "-i in") if "to_sparse" not in k] == [f"{k}.0.forward" for k in (
        "Torch.mm", "Torch.sspaddmm", "Tensor.neg", "Tensor.abs", "Tensor.positive")], keys("aliases", "-i in")


class Stand(torch.Tensor):
    """Without elements of its own."""
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, x):
        new = torch.Tensor._make_wrapper_subclass(cls, x.shape, dtype=x.dtype)
        new.x = x
        return new

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return cls(func(*[a.x if isinstance(a, cls) else a for a in args], **(kwargs or {})))


def again():
    """torch.autograd.grad as backward(): what is computed again is recorded, and marked."""
    net = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    with accrecord.record(output_dir=folder("again")):
        x = torch.randn(2, 3, requires_grad=True)
        loss = torch.utils.checkpoint.checkpoint(net, x, use_reentrant=False).sum()
        torch.autograd.grad(loss, x)
        x * 2
    text = subprocess.run(f"accdump-read -i out,in {folder('again')} | accfmt --tsv -c key,recompute | "
                          "tail -n +2 | uniq", shell=True, check=True, stdout=subprocess.PIPE).stdout.decode()
    got = [line.split("\t") for line in text.splitlines()]
    marked = [k for k, again_too in got if again_too == "true"]
    assert marked == ["Functional.linear.1.forward", "Torch.tanh.1.forward"], text
    assert "Functional.linear.0.backward" in [k for k, _ in got] and got[-1] == ["Tensor.mul.0.forward", ""], text


def lacking():
    """What cannot be recorded is said, and the program goes on."""
    accrecord._lacking.clear()
    with warnings.catch_warnings(record=True) as said, accrecord.record(output_dir=folder("lacking")):
        warnings.simplefilter("always")
        for _ in range(2):
            torch.sparse.mm(torch.eye(3).to_sparse(), torch.ones(3, 2))
            torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8).dequantize()
            assert torch.equal(torch.sin(Stand(torch.ones(2))).x, torch.ones(2).sin())
            other = threading.Thread(target=nn.Linear(2, 2), args=(torch.ones(1, 2),))
            other.start()
            other.join()
    said = [str(w.message) for w in said if "accrecord" in str(w.message)]
    assert said == ["accrecord: not recorded: " + what for what in (
        "the elements of sparse tensors", "the elements of quantized tensors",
        "the elements of tensors that stand for others, as those of torch.func do, or whose memory is freed",
        "what threads compute other than the one in which recording started")], said


@torch.jit.script
def scripted(x, y):
    return torch.relu(x) * y


def whole():
    """What cannot be seen inside is one op call, forward and backward, and the same each time."""
    net = torch.jit.script(nn.Linear(3, 2))
    once = torch.compile(nn.Linear(3, 3), backend="eager") if hasattr(torch, "compile") else None
    twice = torch.compile(lambda x: x * 2, backend="eager") if once is not None else None
    with accrecord.record(output_dir=folder("script")):
        for _ in range(3):
            x = torch.randn(2, 3, requires_grad=True)
            if once is not None:
                x = twice(once(x))
            y = net(scripted(x, x))
        torch.autograd.backward(y, torch.ones(2, 2))
        torch.jit.trace(nn.Linear(3, 2), x)
    calls = ["Script.scripted.%d.forward", "Script.forward.%d.forward"]
    if once is not None:
        calls = ["Compiled.Linear.%d.forward", "Compiled.<lambda>.%d.forward"] + calls
    assert keys("script", "-p forward") == [c % i for i in range(3) for c in calls], keys("script")
    back = [c % 2 for c in reversed(calls)]
    assert keys("script", "-p backward") == [c.replace("forward", "backward") if "Script.f" not in c else
                                             "Script.forward.2.backward" for c in back], keys("script")


class Outside(torch.autograd.Function):
    """What an extension computes: here, numpy."""

    @staticmethod
    def forward(ctx, x):
        return torch.from_numpy(x.detach().numpy() * 2)

    @staticmethod
    def backward(ctx, g):
        return torch.from_numpy(g.numpy() * 2)


class Inside(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


def extensions():
    """Operators that others registered, and functions whose inside cannot be seen."""
    mine = torch.library.Library("acctest", "DEF")
    mine.define("twice(Tensor x) -> Tensor")
    mine.define("fill(Tensor(a!) x, float v) -> ()")
    mine.impl("twice", lambda x: x * 2, "CPU")

    def fill(x, v):
        x.fill_(v)
    mine.impl("fill", fill, "CPU")
    apply = torch.autograd.Function.apply
    with accrecord.record(output_dir=folder("extensions")):
        x = torch.ones(3, requires_grad=True)
        with torch.no_grad():
            torch.ops.acctest.twice(x)
            torch.ops.acctest.fill(torch.zeros(2), 5.0)
        y = torch.ops.aten.mul.Tensor(Outside.apply(x), x)
        torch._C._VariableFunctions.norm(Inside.apply(y)).backward()
    assert torch.autograd.Function.apply == apply and Inside.apply(x) is not None
    assert keys("extensions") == [
        "Torch.ops.acctest.twice.0.forward", "Torch.ops.acctest.fill.0.forward", "Function.Outside.0.forward",
        "Aten.mul.0.forward", "Tensor.mul.0.forward", "Torch.norm.0.forward", "Torch.norm.0.backward",
        "Tensor.mul.1.forward", "Aten.mul.0.backward", "Function.Outside.0.backward"], keys("extensions")
    text = subprocess.run(f"accdump-read -o Torch.ops.acctest.fill {folder('extensions')} | accmetric | "
                          "accfmt --tsv -c io,s.max", shell=True, check=True, stdout=subprocess.PIPE).stdout
    assert text.decode().split() == ["io", "s.max", "in", "0.0", "in", "out", "5.0"], text


class Nested(torch.autograd.Function):
    """Its backward call computes again, and runs backward, `depth` times; beyond 60 times autograd does it in
    a thread of its own, as it does what is on other devices."""

    @staticmethod
    def forward(ctx, x, depth):
        ctx.depth = depth
        ctx.save_for_backward(x)
        return x * 1

    @staticmethod
    def backward(ctx, g):
        x = ctx.saved_tensors[0].detach().requires_grad_()
        Nested.elsewhere = threading.get_ident()
        with torch.enable_grad():
            y = Nested.apply(x, ctx.depth - 1) if ctx.depth > 0 else x.exp()
            y.backward(g)
        return x.grad, None


def elsewhere():
    with accrecord.record(output_dir=folder("elsewhere"), op_list=["exp"]):
        x = torch.ones(2, requires_grad=True)
        Nested.apply(x, 70).backward(torch.ones(2))
    assert Nested.elsewhere != threading.get_ident(), "the same thread"
    assert keys("elsewhere") == ["Tensor.exp.0.forward", "Tensor.exp.0.backward"], keys("elsewhere")


def child():
    """A child of fork that ends as programs do records nothing, and leaves alone what its parent records."""
    for name, options in (("child", {}), ("child-msprobe", {"layout": "msprobe"}),
                          ("child-online", {"keep": 1})):
        with accrecord.record(output_dir=folder(name), **options):
            torch.ones(2) * 2
            if os.fork() == 0:
                torch.ones(2) * 3   # no backward: newer autograd refuses it in a child
                torch.ones(2) + 1
                accrecord.step()
                accrecord.record_switch(False)
                sys.exit(0)   # what is registered with atexit runs
            assert os.wait()[1] == 0
            torch.ones(2) * 4
        if name != "child-online":
            assert keys(name) == ["Tensor.mul.0.forward", "Tensor.mul.1.forward"], keys(name)
            values = subprocess.run(f"accdump-read -i out {folder(name)} | accmetric | accfmt --tsv -c s.max",
                                    shell=True, check=True, stdout=subprocess.PIPE).stdout.split()
            assert values == [b"s.max", b"2.0", b"4.0"], values
    with open(folder("child-online/rank0.judged"), encoding="utf-8") as f:
        assert f.read().splitlines()[1:] == ["0\t0\t"], "judged in a child"


def own(name):
    accrecord.start_record(output_dir=folder(name))
    torch.ones(2) * 2


def worker():
    """A process that multiprocessing forks has the end of its own recording, whether or not its parent records."""
    for name in "worker", "worker-of-recorded":
        if name != "worker":
            accrecord.start_record(output_dir=folder("parent"))
        process = multiprocessing.get_context("fork").Process(target=own, args=(name,))
        process.start()
        process.join()
        assert process.exitcode == 0
        subprocess.run(["accdump-read", folder(name)], check=True, stdout=subprocess.DEVNULL)   # the end is there
        assert keys(name) == ["Tensor.mul.0.forward"], keys(name)


def step_of(rank, name):
    """A rank of DistributedDataParallel: two micro-batches, of which the second one joins; an all_reduce in disguise."""
    dist = torch.distributed
    dist.init_process_group("gloo", init_method="file://" + folder(name + "-meet"), rank=rank, world_size=2)
    dist.all_reduce = functools.partial(lambda real, *args, **options: real(*args, **options), dist.all_reduce)
    torch.manual_seed(0)
    net = nn.parallel.DistributedDataParallel(nn.Linear(3, 2))
    with accrecord.record(output_dir=folder(name)):
        with net.no_sync():
            net(torch.full((1, 3), 1.0 + rank)).sum().backward()
        net(torch.full((1, 3), 10.0 + rank)).sum().backward()
        dist.all_reduce(torch.full((1,), float(rank)), group=None)
        work = dist.all_reduce(torch.full((1,), 5.0 + rank), async_op=True)
        accrecord.step()
        work.wait()


def reduced():
    """What DistributedDataParallel joins: gradients of all micro-batches, their mean, each parameter's. What is waited
    for in the next step is of that. It comes first: behind a backward pass autograd refuses to be forked."""
    ranks = [multiprocessing.get_context("fork").Process(target=step_of, args=(r, "reduced")) for r in (0, 1)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()
        assert process.exitcode == 0
    text = subprocess.run(f"accdump-read {folder('reduced')} | accmetric | accfmt --tsv -c rank,key,io,s.max,value",
                          shell=True, check=True, stdout=subprocess.PIPE).stdout.decode()
    got = [line.split("\t") for line in text.splitlines() if "all_reduce" in line]
    values = [[float(x[3]) for x in got if x[0] == rank and x[2] in ("in", "out")] for rank in "01"]
    assert "Module.model.Linear.parameters_grad.0" in text and "Module.module" not in text, text
    assert values == [[11.0, 12.0, 2.0, 2.0, 0.0, 1.0, 5.0, 11.0], [13.0, 12.0, 2.0, 2.0, 1.0, 1.0, 6.0, 11.0]], values
    assert [x[4] for x in got if x[0] == "0" and x[4].startswith("Red")] == 2 * ["RedOpType.AVG"], got


def listed():
    """A tensor of numbers, one of which is a tensor, and what is indexed behind it is seen."""
    with accrecord.record(output_dir=folder("listed")):
        x = torch.ones(3)
        assert torch.tensor([x.sum(), 1.0]).tolist() == torch.as_tensor([x.sum(), 1.0]).tolist() == [3.0, 1.0]
        x[1]
    assert "Tensor.__getitem__.0.forward" in keys("listed"), keys("listed")


LATE = """
import sys
sys.path.insert(0, sys.argv[1])
import accrecord, torch
accrecord.start_record(output_dir=sys.argv[2])
torch.ones(2) + 1
import torch.distributed.optim
"""


def late():
    """What compiles the optimizers' functions when it is imported does not find them watched."""
    subprocess.run(
        [sys.executable, "-c", LATE, os.path.dirname(os.path.dirname(accrecord.__file__)), folder("late")], check=True)


if __name__ == "__main__":
    os.makedirs(OUT, exist_ok=True)
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        for part in [globals()[name] for name in sys.argv[2:]] or (
                reduced, networks, documents, choices, ranges, ranks, exported, numbers, steps, built, nothing, ptdbg,
                arguments, whole, again, checkpoints, cells, aliases, negative, halves, scaled, lacking, extensions, elsewhere, child, worker, listed,
                late):
            part()
