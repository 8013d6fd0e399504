# pip: mindstudio-probe==26.2.0 torch==2.15.0 numpy==2.4.6
"""mindstudio-probe's recorder of PyTorch."""
import glob
import json
import os
import tempfile

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from tools import behaviour, main


def record(run, net=None, **k):
    """The names and values of dump.json, in its order. msprobe is one per process, so each in its own."""
    import multiprocessing
    with tempfile.TemporaryDirectory() as d:
        p = multiprocessing.get_context("fork").Process(target=_record, args=(d, run, net, k))
        p.start()
        p.join()
        f = glob.glob(d + "/**/dump.json", recursive=True)
        return json.load(open(f[0]))["data"] if f else {}


def _record(d, run, net, k):
    from msprobe.pytorch import PrecisionDebugger
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    c = dict(task="statistics", dump_path=d + "/out", rank=[], step=[], level="L1")
    c.update({a: b for a, b in k.items() if a != "statistics"})
    c["statistics"] = dict(scope=[], list=[], data_mode=["all"], summary_mode="statistics", **k.get("statistics", {}))
    with open(d + "/config.json", "w") as f:
        json.dump(c, f)
    p = PrecisionDebugger(config_path=d + "/config.json")
    p.start(model=net) if net is not None else p.start()
    run()
    p.stop()
    p.step()


@behaviour
def msprobe_focus_risk():
    def run():
        x = torch.ones(2, 3)
        torch.cat([x.view(3, 2).to(torch.float64), torch.empty(1, 2, dtype=torch.float64)]) + torch.relu(torch.ones(3, 2)).double()[0]
    few, all_ = record(run), record(run, risk_level="ALL")
    assert len(all_) > len(few) and not any("cat" in n or "view" in n or "empty" in n for n in few), (list(few), list(all_))
    assert any("cat" in n for n in all_), list(all_)


@behaviour
def msprobe_norm_in_dtype():
    def run():
        for t in (torch.float16, torch.bfloat16, torch.float64):
            torch.relu(torch.full((4096,), 2000.0, dtype=t))
    got = record(run)
    norm = [v["output"][0]["Norm"] for v in got.values()]
    assert norm[0] in ("inf", float("inf")) and norm[1] == 128000.0 and len(norm) == 3, norm


@behaviour
def msprobe_scalar_norm():
    got = record(lambda: torch.relu(torch.tensor(-3.0)))
    assert [v["input_args"][0]["Norm"] for v in got.values()] == [-3.0], got


@behaviour
def msprobe_unary_minus():
    def run():
        x = torch.ones(2, 3)
        -x, abs(x), ~(x > 0), x[0], x[:, 1:], torch.neg(x), x.neg(), 1 - x
    got = [n.rsplit(".", 2)[0] for n in record(run, risk_level="ALL")]
    assert got == ["Tensor.__gt__", "Torch.neg", "Tensor.neg", "Tensor.__rsub__"], got


@behaviour
def msprobe_exception_ends():
    def run():
        torch.relu(torch.ones(2))
        try:
            nn.functional.linear(torch.ones(2, 3), torch.ones(2, 2))
        except RuntimeError:
            pass
        torch.relu(torch.ones(2))
    got = list(record(run))
    assert sum("relu" in n for n in got) == 1, got


@behaviour
def msprobe_checkpoint_ends():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)

        def forward(self, x):
            x = checkpoint(lambda v: torch.tanh(self.a(v)), x, use_reentrant=False)
            return self.b(torch.sigmoid(x))
    net = Net()

    def run():
        for _ in range(2):
            net(torch.ones(2, 3)).sum().backward()
    got = list(record(run, net))
    assert sum("sigmoid" in n and "forward" in n for n in got) == 1, got


@behaviour
def msprobe_float8_nothing():
    got = record(lambda: torch.ones(4, 4).to(torch.float8_e4m3fn), risk_level="ALL")
    (y,) = got["Tensor.to.0.forward"]["output"]
    assert [y[k] for k in ("Max", "Min", "Mean", "Norm")] == [None] * 4 and y["dtype"] == "torch.float8_e4m3fn", y


@behaviour
def msprobe_complex_abs():
    got = record(lambda: torch.complex(torch.ones(2), -torch.ones(2)) * 2)
    x = next(iter(got.values()))["input_args"][0]
    assert x["Norm"] is None and abs(x["Max"] - 2 ** 0.5) < 1e-6 and abs(x["Mean"] - 2 ** 0.5) < 1e-6, x


@behaviour
def msprobe_compile_loses_linear():
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))

    def calls(compiled):
        got = list(record(lambda: torch.sigmoid(compiled(net)(torch.ones(3, 4))), net))
        return {w: sum("." + w + "." in n for n in got) for w in ("linear", "relu", "sigmoid")}
    seen = calls(lambda m: m), calls(lambda m: torch.compile(m, backend="eager"))
    assert seen == ({"linear": 2, "relu": 1, "sigmoid": 1}, {"linear": 0, "relu": 1, "sigmoid": 1}), seen


@behaviour
def msprobe_grads_accumulate():
    net = nn.Sequential(nn.Linear(2, 2, bias=False))

    def run():
        for _ in range(2):
            net(torch.ones(1, 2)).sum().backward()
    got = record(run, net, level="L0")
    assert [got["Module.0.Linear.parameters_grad.%d" % i]["weight"][0]["Max"] for i in range(2)] == [1, 2], list(got)


@behaviour
def msprobe_square_weight_turned():
    def run():
        w = torch.tensor([[1.0, 2], [3, 4]], requires_grad=True)
        nn.functional.linear(torch.tensor([[1.0, 10]]), w).mul(torch.tensor([[1.0, 100]])).sum().backward()
    with tempfile.TemporaryDirectory() as d:
        record(run, task="tensor", tensor=dict(scope=[], list=[], data_mode=["all"]), dump_path=d)
        (f,) = glob.glob(d + "/**/Functional.linear.0.backward.output.1.pt", recursive=True)
        # The gradient of the weight is [[1, 10], [100, 1000]].
        assert torch.load(f).tolist() == [[1, 100], [10, 1000]], torch.load(f)


@behaviour
def msprobe_vmap_batched():
    got = record(lambda: torch.func.vmap(lambda x: torch.softmax(x, 0))(torch.ones(5, 3, 4)))
    (y,) = got["Torch.softmax.0.forward"]["output"]
    assert y["type"] == "BatchedTensor" and y["shape"] == [5, 3, 4] and abs(y["Max"] - 1 / 3) < 1e-6, y


@behaviour
def msprobe_lstm_nothing():
    assert record(lambda: nn.LSTM(2, 3)(torch.ones(4, 1, 2))) == {}
    assert record(lambda: nn.Linear(2, 3)(torch.ones(4, 2))) != {}


@behaviour
def msprobe_tied_twice():
    net = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    net[1].weight = net[0].weight
    got = record(lambda: net(torch.ones(1, 2)).sum().backward(), net, level="L0")
    a, b = (got["Module.%d.Linear.parameters_grad.0" % i]["weight"][0]["Norm"] for i in range(2))
    assert a == b, (a, b)


if __name__ == "__main__":
    main()
