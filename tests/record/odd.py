"""Programs with values that cannot be recorded, or not easily, each without and with recording into folders of OUT, in
both layouts: they compute the same, to their end; what is not recorded is said once, with its kind. Needs torch.

Usage: odd.py OUT [PROGRAM...]"""
import collections
import os
import subprocess
import sys
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

from nets import accrecord  # noqa: E402

NEW = hasattr(torch, "compile")   # PyTorch 2


def nested():
    n = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    return (n * 2).to_padded_tensor(0.0)


def jagged():
    """Of parts of unlike lengths, with gradients."""
    if not hasattr(torch, "jagged"):
        return []
    parts = [torch.ones(2, 3, requires_grad=True), torch.ones(1, 3, requires_grad=True)]
    n = torch.nested.as_nested_tensor(parts, layout=torch.jagged)
    y = nn.Linear(3, 2)(n).relu().values().sum()
    y.backward()
    return [y, parts[0].grad]


def attention():
    """The same in what keys and values are."""
    if not hasattr(torch, "jagged"):
        return []
    n = torch.nested.nested_tensor([torch.ones(2, 2, 4), torch.ones(3, 2, 4)], layout=torch.jagged).transpose(1, 2)
    return F.scaled_dot_product_attention(n, n, n).transpose(1, 2).values()


def sparse():
    s = torch.eye(3).to_sparse().requires_grad_()
    y = torch.sparse.mm(s, torch.ones(3, 2))
    y.sum().backward()
    e = nn.Embedding(4, 2, sparse=True)
    e(torch.tensor([1, 1])).sum().backward()
    torch.optim.SparseAdam(list(e.parameters())).step()
    c = torch.eye(3).to_sparse_csr()
    return [y, e.weight, c @ torch.ones(3, 1), (s.detach() * 2).to_dense()]


def masked():
    if not hasattr(torch, "masked"):
        return []
    m = torch.masked.masked_tensor(torch.arange(4.), torch.tensor([True, False, True, True]))
    return (m * 2).sum().get_data()


def transforms():
    """Those of torch.func, whose tensors stand for others."""
    if not NEW:
        return []
    x = torch.arange(6.).view(2, 3)

    def loss(v):
        return (v * v.sin()).sum()
    return [torch.func.vmap(loss)(x), torch.func.grad(loss)(x), torch.func.jacrev(torch.sin)(x[0]),
            torch.func.jvp(loss, (x,), (x,))[1], torch.func.vmap(torch.func.grad(loss))(x)]


def fake():
    if not NEW:
        return []
    from torch._subclasses.fake_tensor import FakeTensorMode
    with FakeTensorMode():
        y = nn.Linear(3, 2)(torch.ones(4, 3)).relu()
    return list(y.shape)


def meta():
    y = nn.Linear(3, 2, device="meta")(torch.ones(4, 3, device="meta"))
    return list(y.shape)


def lazy():
    net = nn.Sequential(nn.LazyLinear(2), nn.ReLU())
    nn.init.ones_(nn.Linear(1, 1).weight)
    list(net.parameters())
    y = net(torch.ones(2, 3))
    y.sum().backward()
    return [y.shape, net[0].bias.grad]


def dtypes():
    """Also those that hardly anything is computed with."""
    out = []
    for name in ("float8_e4m3fn", "float8_e8m0fnu", "uint16", "uint64", "complex32", "bfloat16", "float4_e2m1fn_x2",
                 "bits8", "uint4", "int3"):
        if hasattr(torch, name):
            t = torch.arange(16, dtype=torch.uint8).view(2, 8)
            t = t.view(getattr(torch, name))
            out.append(t.view(torch.uint8).clone())
    return out


def quantized():
    q = torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8)
    return [q.dequantize(), torch.relu(q).int_repr()]


def freed():
    """Memory that is taken away, and given back, as sharding does with weights."""
    t = torch.ones(64, 64)
    part = t[32:]
    memory = t.untyped_storage() if hasattr(t, "untyped_storage") else t.storage()._storage
    size = memory.nbytes()
    memory.resize_(0)
    try:
        part.view(-1)
        memory.resize_(4096)
        part.view(-1)
    finally:
        memory.resize_(size)
        t.fill_(1)
    return t + 1


class Counted(torch.Tensor):
    """What its functions are asked for is counted."""
    asked = collections.Counter()

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        Counted.asked[getattr(func, "__name__", "")] += 1
        return super().__torch_function__(func, types, args, kwargs or {})


def counted():
    Counted.asked.clear()
    x = torch.ones(3).as_subclass(Counted)
    (x * 2 + x).sum()
    return sorted(Counted.asked.items())


class Refusing(torch.Tensor):
    """It does one thing, and nothing else."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func not in (torch.Tensor.mul, torch.Tensor.__mul__, torch.Tensor.as_subclass):
            raise NotImplementedError(f"no {func}")
        return super().__torch_function__(func, types, args, kwargs or {})


def refusing():
    return (torch.ones(3).as_subclass(Refusing) * 2).as_subclass(torch.Tensor)


class Broken:
    """An argument that cannot be printed."""

    def __repr__(self):
        raise RuntimeError("no")


class Outside(torch.autograd.Function):
    """What is computed elsewhere, of arguments of any kind."""

    @staticmethod
    def forward(ctx, x, *_):
        return torch.from_numpy(x.detach().numpy() * 2)

    @staticmethod
    def backward(ctx, g):
        return (g * 2,) + (None,) * 3


class Modules(nn.Module):
    """A module that is not hashable, and equal to nothing."""
    __hash__ = None

    def __eq__(self, other):
        raise RuntimeError("no")

    def forward(self, x):
        return x * 2


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(2, 2)

    def forward(self, x, **more):
        return {"y": self.line(x), "more": more, "itself": [x, {"deep": (x + 1,)}]}


def arguments():
    x = torch.arange(6.).view(2, 3)
    out = [Outside.apply(x, Broken(), "\ud800", {"a": [Broken]}), torch.full((2,), 2**62 + 1) * 3, x.sum(dim=(0, -1)), x.view(torch.Size([3, 2]))]
    out += [torch.where(x > 2, x, float("nan")).nan_to_num(), x.split([1, 2], dim=1)[1], x[..., None, 1:2:1], x[[0, 1], 1]]
    out += [torch.einsum("ij,ij", x, x), x.new_tensor(range(2)) * 1, torch.bucketize(3, torch.arange(9)) + 0]
    return out


def modules():
    net = Outer()
    y = net(torch.ones(1, 2), strange="\ud800", number=2**70)["y"]
    y.sum().backward()
    try:
        Modules()(torch.ones(2))   # torch itself does not take it everywhere
    except (RuntimeError, TypeError):
        pass
    return [y, net.line.weight.grad]


def ended():
    """An exception of the program's own is its own, also within modules, and what comes then is recorded."""
    net = nn.Sequential(nn.Linear(2, 3), nn.Linear(2, 3))
    said = []
    for _ in range(2):
        try:
            net(torch.ones(1, 2))
        except RuntimeError as e:
            said.append(type(e).__name__)
    return [said, net[0](torch.ones(1, 2))]


def traced():
    """What looks at a program, to make another of it."""
    net, x = nn.Sequential(nn.Linear(2, 2), nn.ReLU()), torch.ones(1, 2)
    out = [torch.fx.symbolic_trace(net)(x)]
    if hasattr(torch, "export") and hasattr(torch.export, "export"):
        out.append(torch.export.export(net, (x,)).module()(x))
    return out


def inference():
    with torch.inference_mode():
        y = nn.Linear(2, 2)(torch.ones(1, 2))
    return [y, torch.ones(2, 2).t().conj() + 1, torch.view_as_complex(torch.ones(2, 2)).conj().imag + 0]


PROGRAMS = (nested, jagged, attention, sparse, masked, transforms, fake, meta, lazy, dtypes, quantized, freed, counted,
            refusing, arguments, modules, ended, traced, inference)


def plain(x):
    """To be compared."""
    if isinstance(x, torch.Tensor):
        x = x.detach()
        return (str(x.dtype), list(x.shape), x.double().tolist() if not x.is_complex() else str(x))
    return [plain(v) for v in x] if isinstance(x, (list, tuple)) and not isinstance(x, torch.Size) else x


def run(program, out):
    torch.manual_seed(0)
    want = plain(program())
    for layout in None, "msprobe":
        name = os.path.join(out, f"{program.__name__}-{layout or 'own'}")
        torch.manual_seed(0)
        with warnings.catch_warnings(record=True) as said, accrecord.record(output_dir=name, layout=layout):
            warnings.simplefilter("always")
            accrecord._lacking.clear()
            torch.ones(1) * 1
            got = plain(program())
            torch.ones(1) * 2   # it is recorded still
        assert got == want, (program.__name__, layout, got, want)
        said = [str(w.message) for w in said if "accrecord" in str(w.message)]
        assert len(said) == len(set(said)) and all("not recorded: " in s for s in said), said
        for s in said:
            print(f"{program.__name__} {layout or 'own'}: {s.partition('not recorded: ')[2]}")
        done = subprocess.run(f"accdump-read -p forward -i out {name} | accmetric | accfmt --tsv -c op,s.max", shell=True,
                              check=True, stdout=subprocess.PIPE).stdout.decode().splitlines()
        assert done[-1] == "Tensor.mul\t2.0", (program.__name__, layout, done)


if __name__ == "__main__":
    torch.set_num_threads(1)
    os.makedirs(sys.argv[1], exist_ok=True)
    for one in [globals()[n] for n in sys.argv[2:]] or PROGRAMS:
        run(one, sys.argv[1])
