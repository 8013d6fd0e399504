#!/usr/bin/env python3
"""The same ports, recorded by msprobe on both sides:

    ports_msprobe.py torch FOLDER [PORT...]        FOLDER/PORT/bench, by the torch of tests/torch/torch.txt
    ports_msprobe.py mindspore FOLDER [PORT...]    FOLDER/PORT/FAULT/device, PyNative; by mindstudio-probe 26.2.0 and pandas
    ports_msprobe.py score FOLDER [PORT...]

msprobe 26.2.0 calls mint.norm, which has no kernel on a CPU: numpy's is put in its place. The kernels that are right to name are
those of ports.py, by what the primitive, the function or the cell of that line is called here."""
import json
import os
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import ports  # noqa: E402

# What a kernel's line is recorded as.
ALSO = {"Conv2DBackpropInput": "conv_transpose2d conv2d_transpose", "BinaryCrossEntropy": "binary_cross_entropy", "CumSum": "cumsum", "Elu": "elu",
        "LpNorm": "norm", "BatchMatMul": "bmm matmul", "Div": "__truediv__ div gelu", "Mul": "__mul__ __rmul__ mul", "Add": "__add__ __radd__ add",
        "Split": "chunk", "Concat": "cat", "StridedSlice": "__getitem__", "ReduceMean": "mean", "ReduceSum": "sum", "ReLU": "relu", "ReLU6": "relu6",
        "Softmax": "softmax", "Tanh": "tanh", "Sigmoid": "sigmoid", "HSigmoid": "hardsigmoid", "Maximum": "leaky_relu clamp", "LeakyReLU": "leaky_relu",
        "MaskedFill": "masked_fill", "GroupNorm": "group_norm", "BatchNorm": "batch_norm", "Conv2D": "conv2d", "ReduceStd": "var std", "Log": "log log1p",
        "loss-Cross": "cross_entropy", "loss-": "l1_loss mse_loss loss", "LogSoftmax": "log_softmax", "ResizeBilinearV2": "interpolate", "KLDivLoss": "kl_div", "BCEWithLogitsLoss": "binary_cross_entropy_with_logits", "rnn-": "rnn"}


def place(kernels, first):
    words = {w.lower() for w in first.replace("/", ".").split(".")}
    names = {n.lower() for k in kernels for n in (k, *ALSO.get(k, "").split())}
    names |= {k.split("-")[0].lower() for k in kernels if "-" in k and not k.endswith("-")}  # q-Dense is the cell q
    return bool(words & names) or any("-" in k and k in first for k in kernels)


def run(name, net, x, t, opt, debugger, step):
    debugger.start(net)
    loss = step(net, x, t, opt)
    debugger.stop()
    debugger.step()
    print(name, loss, flush=True)


def record_torch(folder, name):
    import torch
    from msprobe.pytorch import PrecisionDebugger
    torch.manual_seed(3)
    nets = ports.torch_nets()
    more = [m for m in ports.MORE if name in m.PORTS]
    for m in more:
        nets.update(m.torch_nets())
    _, kind, train, _ = ports.PORTS[name]
    to = os.path.join(folder, name)
    os.makedirs(to, exist_ok=True)
    net = nets[name]()
    for p in net.parameters():
        if p.dim() == 1:
            p.data += 0.1 * torch.randn(p.shape)
    net.train(train)
    np.savez(os.path.join(to, "net.npz"), **{k: v.numpy() for k, v in net.state_dict().items()})
    x, t = (torch.from_numpy(v) for v in ports.data(kind))
    x = x if x.is_floating_point() else x.long()
    t = t if t.is_floating_point() else t.long()

    def step(net, x, t, opt):
        loss = net(x, t)
        loss.backward()
        return loss.item()

    run(name, net, x, t, None, PrecisionDebugger(task="tensor", level="mix", dump_path=os.path.join(to, "bench")), step)


def numpys_norm():
    import mindspore as ms
    from mindspore import mint
    mint.norm = lambda x, *a, **k: ms.Tensor(np.linalg.norm(x.asnumpy().astype(np.float64)).astype(np.float32))


def record_mindspore(folder, name, fault):
    import mindspore as ms
    from msprobe.mindspore import PrecisionDebugger
    ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU", runtime_num_threads=1)
    _, kind, train, _ = ports.PORTS[name]
    net = ports.loaded(folder, name, fault)
    net.set_train(train)
    x, t = (ms.Tensor(v) for v in ports.data(kind))
    grad = ms.value_and_grad(net, None, net.trainable_params())
    to = os.path.join(folder, name, fault)
    os.makedirs(to, exist_ok=True)
    # Its task= counts nothing: without a file it records statistics.
    with open(os.path.join(to, "config.json"), "w") as f:
        json.dump({"task": "tensor", "dump_path": os.path.join(to, "device"), "rank": [], "step": [], "level": "mix",
                   "tensor": {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": "statistics"}}, f)
    run(name + " " + fault, net, x, t, None, PrecisionDebugger(config_path=os.path.join(to, "config.json")),
        lambda net, x, t, opt: grad(x, t)[0])


def main():
    what, folder = sys.argv[1], os.path.abspath(sys.argv[2])
    names = [p for p, row in ports.PORTS.items() if row[1] != "step" and (p in sys.argv[3:] or row[0] in sys.argv[3:] or len(sys.argv) == 3)]
    if what == "score":
        return ports.score(folder, names, int(os.environ.get("SHOW", "200")), place)
    if what == "torch":
        import msprobe.pytorch  # noqa: F401
    else:
        numpys_norm()
        import msprobe.mindspore  # noqa: F401
    for name in names:
        for fault in ["right"] if what == "torch" else ["right", *ports.PORTS[name][3]]:
            if os.fork() == 0:
                try:
                    record_torch(folder, name) if what == "torch" else record_mindspore(folder, name, fault)
                except BaseException as e:
                    print("not run:", name, fault, type(e).__name__, str(e).strip().split("\n")[0], flush=True)
                os._exit(0)
            os.wait()


main() if __name__ == "__main__" else None
