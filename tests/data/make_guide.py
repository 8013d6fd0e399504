"""What the steps of the vendors' guides record, by the tools themselves: tests/data/guide.tar.gz. Needs torch 2.15,
numpy and tokenizers, and accrecord with its library (ACCREC_LIBRARY).

Usage: make_guide.py

    before/     one small network three times: the device before a fix, after it, and the bench (accrecord, level 2)
    optim/      steps of optimizers: foreach and fused, right, and with one parameter's update wrong
    clip/       f16: an overflow that a clamp takes away, and one that it does not
    plain/      a scale of ones on the bench, that nobody made, where another op call makes ones, too
    interface/  an overflow as register_hook(overflow_check) records it
    batch/      batches as the guide's patch of Megatron saves them, of real text, with its tokenizer
    norms/      local norms as the guide's patch of Megatron prints them (squares), and as norms
"""
import contextlib
import functools
import io
import os
import shutil
import sys
import tarfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../python"))
sys.dont_write_bytecode = True

import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

import accrecord  # noqa: E402

MODEL = '''import torch
import torch.nn.functional as F


class Net(torch.nn.Module):
    def __init__(self, off=1.0, p=0.0):
        super().__init__()
        self.inv_freq = off / (10000 ** (torch.arange(0, 8, 2).float() / 8))
        self.a, self.b, self.p = torch.nn.Linear(8, 8), torch.nn.Linear(8, 4), p

    def forward(self, x):
        angle = torch.einsum("i,j->ij", torch.arange(6.0), self.inv_freq)
        x = self.a(x * torch.cat((angle.cos(), angle.sin()), -1))
        x = F.dropout(x, self.p, training=True)
        return self.b(F.gelu(x))
'''


def record(out, step, **options):
    accrecord.start_record(output_dir=out, **options)
    step()
    accrecord.record_switch(False)
    accrecord._replace(None)


def before():
    with open("model.py", "w", encoding="utf-8") as f:
        f.write(MODEL)
    sys.path.insert(0, os.getcwd())
    import model
    for out, off, wrong in ("old", 1.001, True), ("new", 1.0, True), ("bench", 1.0, False):
        torch.manual_seed(1)
        net, x, y = model.Net(off), torch.randn(2, 6, 8), torch.randn(2, 6, 4)

        def step():
            loss = F.mse_loss(net(x), y)
            loss.backward()
        if wrong:   # beneath the op call, as a kernel is
            lib = torch.library.Library("aten", "IMPL")
            lib.impl("gelu", lambda t, approximate="none": bent(t), "CPU")
        record("before/" + out, step)
        if wrong:
            lib._destroy()


def bent(t):
    y = 0.5 * t * (1 + torch.erf(t * 0.7071067811865476))
    return torch.where(t > 0.5, y * 1.02, y)


def optim():
    kinds = {"adam-foreach": (torch.optim.Adam, {"foreach": True, "weight_decay": 0.1}),
             "adamw-fused": (torch.optim.AdamW, {"fused": True, "weight_decay": 0.1}),
             "sgd-foreach": (torch.optim.SGD, {"foreach": True, "momentum": 0.9})}
    for name, (kind, options) in kinds.items():
        for wrong in False, True:
            torch.manual_seed(2)
            net = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.Linear(4, 3))
            opt = kind(net.parameters(), lr=0.01, **options)
            grads = [torch.randn_like(p) for p in net.parameters()]

            def step():
                for _ in range(2):
                    for p, g in zip(net.parameters(), grads):
                        p.grad = g.clone()   # the bench's, loaded
                    opt.step()
            if wrong:   # the kernel writes another weight than its own inputs give
                with kernel_that_errs(list(net.parameters())[2]):
                    record(f"optim/{name}-wrong", step)
            else:
                record(f"optim/{name}", step)


@contextlib.contextmanager
def kernel_that_errs(weight):
    """Behind the update of this weight, inside of the op call that is recorded."""
    names = ["adam", "adamw", "sgd"]
    modules = [sys.modules["torch.optim." + n] for n in names]
    plain = [getattr(m, n) for m, n in zip(modules, names)]

    def erring(f):
        @functools.wraps(f)
        def run(params, *args, **kwargs):
            f(params, *args, **kwargs)
            with torch.no_grad():
                for p in params:
                    if p is weight:
                        p.data[0, 0] *= 1.001
        return run
    for m, n, f in zip(modules, names, plain):
        setattr(m, n, erring(f))
    try:
        yield
    finally:
        for m, n, f in zip(modules, names, plain):
            setattr(m, n, f)


def clip():
    for name in "clamped", "added":
        torch.manual_seed(3)
        x = torch.randn(4, 4).half() * 400

        def step():
            y = x * x
            z = y.view(16).clamp(max=1000.0) if name == "clamped" else y.view(16) + 1.0
            (z * 0.5).sum()
        record("clip/" + name, step)


def number():
    """A scale of ones, which no op call made, beside one that another op call makes."""
    for out, scale in ("device", 2), ("bench", 1):
        torch.manual_seed(5)
        x, ones, scales = torch.randn(8), torch.ones(8), torch.full((8,), float(scale))

        def step():
            F.relu(ones)
            x * scales
        record("plain/" + out, step)


def interface():
    from accrecord import overflow_check, register_hook, set_dump_path
    net = torch.nn.Linear(4, 4).half()
    set_dump_path("interface")
    register_hook(net, overflow_check, overflow_nums=1)
    with contextlib.suppress(accrecord.OverflowStop):
        net(torch.ones(2, 4).half() * 60000)
        torch.ones(4).half() * 60000 * 60000
    accrecord._replace(None)


def batch():
    from tokenizers import ByteLevelBPETokenizer
    text = MODEL + open(os.path.join(HERE, "../../README.zh.md"), encoding="utf-8").read()[:3000]
    tok = ByteLevelBPETokenizer()
    tok.train_from_iterator(text.splitlines(), vocab_size=320, special_tokens=["<pad>", "<s>", "</s>"])
    os.makedirs("batch")
    tok.save("batch/tokenizer.json")
    ids = tok.encode("精度对齐: the loss of step 1 agrees.\n" + text[:900]).ids
    rows = np.array(ids[:4 * 17], dtype=np.int64).reshape(4, 17)
    ends = rows.copy()
    ends[1, 9:], ends[3, 12:] = 0, 0
    ends[1, 8] = ends[3, 11] = 2
    real = ends[:, 1:] != 0

    def save(name, tokens, labels, mask):
        path = f"batch/{name}/step_0/rank_0"
        os.makedirs(path)
        np.save(path + "/tokens.npy", tokens)
        np.save(path + "/labels.npy", labels)
        np.save(path + "/loss_mask.npy", mask.astype(np.float32))
    ones = np.ones((4, 16))
    save("good", rows[:, :-1], rows[:, 1:], ones)
    save("same", rows[:, :-1], rows[:, :-1], ones)
    save("twice", rows[:, :-2], rows[:, 2:], np.ones((4, 15)))
    one = rows[:, 1:].copy()
    one[2, 5] += 1
    save("one", rows[:, :-1], one, ones)
    save("masked", ends[:, :-1], ends[:, 1:], real)
    save("padded", ends[:, :-1], ends[:, 1:], ones)


def norms():
    """As the patch in the guide prints them, and the same by their names without the square."""
    os.makedirs("norms")
    torch.manual_seed(4)
    net = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.Linear(4, 3), torch.nn.Linear(3, 2))
    with open("norms/gpu.log", "w", encoding="utf-8") as gpu, open("norms/npu.log", "w", encoding="utf-8") as npu:
        for it in range(1, 4):
            net.zero_grad()
            loss = net(torch.randn(5, 6)).pow(2).mean()
            loss.backward()
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                grad_norm_list = []
                for param in net.parameters():
                    grad_norm = torch.norm(param.grad, 2)
                    grad_norm_list.append(grad_norm ** 2)
                print("print torch local norm:")
                print(grad_norm_list)
            gpu.write(said.getvalue())
            gpu.write(f" iteration {it:8d}/       3 | consumed samples: {it:12d} | elapsed time per iteration (ms): 10.0"
                      f" | learning rate: 1.000000E-05 | global batch size:     1 | lm loss: {loss.item():.6E}"
                      f" | loss scale: 1.0 | grad norm: 1.000 |\n")
            for name, param in net.named_parameters():
                npu.write(f"2026-11-29 10:00:0{it},000 - mindformers[mindformers/core/callback/callback.py:900] - INFO"
                          f" - Epoch:[  1/  1], step:[{it:5d}/    3] local_norm/{name}: "
                          f"{param.grad.norm().item():.6f}\n")
            npu.write(f"2026-11-29 10:00:0{it},000 - mindformers[mindformers/core/callback/callback.py:561] - INFO - "
                      f"{{ Epoch:[  1/  1], step:[{it:5d}/    3], loss: {loss.item():.3f}, per_step_time: 10ms, "
                      f"lr: 1e-05, overflow cond: False, loss_scale: 1.0, global_norm: [1.000], "
                      f"train_throughput_per_npu: 1.000T\n")


def plain_frame(frame_text):
    """Lines of code without the folders of this machine."""
    places = (os.path.dirname(os.path.dirname(torch.__file__)), "/venv/site-packages"), (HERE, "/home/user/train"), \
        ("/tmp/acctools-guide", "/home/user/train")

    @functools.wraps(frame_text)
    def plain(self, *args):
        text = frame_text(self, *args)
        for own, common in places:
            text = text.replace(own, common)
        return text
    return plain


def main():
    folder = "/tmp/acctools-guide"
    os.makedirs(folder)   # the same on every machine, for recordings name it
    os.chdir(folder)
    accrecord.Recorder.frame_text = plain_frame(accrecord.Recorder.frame_text)
    torch.set_num_threads(1)
    for make in before, optim, clip, number, interface, batch, norms:
        make()
    names = sorted(n for n in os.listdir(".") if n in ("before", "optim", "clip", "plain", "interface", "batch", "norms"))

    def plain(info):
        info.uid = info.gid = info.mtime = 0
        info.uname = info.gname = ""
        return info
    with tarfile.open(os.path.join(HERE, "guide.tar.gz"), "w:gz") as tar:
        for n in names:
            tar.add(n, filter=plain)
    print(os.path.getsize(os.path.join(HERE, "guide.tar.gz")), folder)
    if "KEEP" not in os.environ:
        shutil.rmtree(folder)


main()
