# pip: torch==2.15.0 numpy==2.4.6
"""PyTorch on the CPU."""
import math
import os
import sys
import tempfile

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from tools import behaviour, main


def rounded(x, f):
    """f of all of x, in f64, rounded once."""
    return torch.tensor([f(v) for v in x.double().tolist()], dtype=torch.float64).to(x.dtype)


def all_bf16(low, high):
    x = torch.arange(-32768, 32768, dtype=torch.int32).to(torch.int16).view(torch.bfloat16)
    return x[(x.abs() >= low) & (x.abs() <= high)]


@behaviour
def torch_adamw_is_adam():
    seen, adam = [], sys.modules[torch.optim.Adam.__module__]
    old = adam.adam
    adam.adam = lambda *a, **k: seen.append(k.get("decoupled_weight_decay"))
    try:
        p = nn.Parameter(torch.ones(3))
        p.grad = torch.ones(3)
        torch.optim.AdamW([p]).step()
    finally:
        adam.adam = old
    assert seen == [True], seen


@behaviour
def torch_rms_norm_eps():
    x = torch.full((1, 8), 2e-4).bfloat16()
    y = F.rms_norm(x, (8,)).float()[0, 0].item()
    v = x.float()[0, 0].item()
    by = [v / math.sqrt(v * v + torch.finfo(t).eps) for t in (torch.float32, torch.bfloat16)]
    assert abs(y / by[0] - 1) < 0.01 and abs(by[1] / by[0] - 1) > 0.5, (y, by)


@behaviour
def torch_erf_bf16():
    x = all_bf16(0, math.inf)
    off = (torch.erf(x) != rounded(x, math.erf)).double().mean().item()
    assert 0.4 < off < 0.5 and torch.erf(torch.tensor(1e-8).bfloat16()) == 0, off
    x = all_bf16(1e-3, 3)
    assert (torch.tanh(x) != rounded(x, math.tanh)).double().mean().item() < 0.01


@behaviour
def torch_fp8_casts():
    x = torch.tensor([math.inf, 1e9])
    assert x.to(torch.float8_e4m3fn).float().tolist() == [448, 448]
    assert x.to(torch.float8_e5m2).float().tolist() == [math.inf, math.inf]
    assert x.to(torch.float8_e4m3fnuz).float().isnan().all()


@behaviour
def torch_e8m0_casts():
    x = torch.tensor([-2.0, 0.0, 5.0]).to(torch.float8_e8m0fnu).float().tolist()
    assert x[0] == 2 and x[1] == 2.0 ** -127, x


@behaviour
def torch_nan_bits():
    x = torch.full((64, 2), math.nan)
    a = x.to(torch.bfloat16).contiguous().view(torch.int16)[0, 0].item()
    b = x[:, 0].to(torch.bfloat16).contiguous().view(torch.int16)[0].item()
    assert a != b, (a, b)


@behaviour
def torch_dataloader_draws():
    torch.manual_seed(1)
    a = torch.get_rng_state()
    list(torch.utils.data.DataLoader([1, 2, 3]))
    assert not torch.equal(a, torch.get_rng_state())


@behaviour
def bf16_second_moment():
    p = nn.Parameter(torch.ones(4).bfloat16())
    o = torch.optim.AdamW([p], lr=0.0)
    p.grad = torch.ones_like(p)
    o.step()
    v = o.state[p]["exp_avg_sq"].clone()
    p.grad = torch.zeros_like(p)
    for _ in range(100):
        o.step()
    assert torch.equal(v, o.state[p]["exp_avg_sq"])


@behaviour
def torch_function_mode_backward():
    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, f, types, a=(), k=None):
            seen.append(getattr(f, "__name__", ""))
            return f(*a, **(k or {}))
    seen = []
    x = torch.ones(3, requires_grad=True)
    with Mode():
        y = checkpoint(lambda v: torch.exp(v) * 2, x, use_reentrant=False).sum()
        before = seen.count("exp")
        y.backward()
    assert before == 1 and seen.count("exp") == 1, seen


@behaviour
def torch_checkpoint_hooks():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)

        def forward(self, x):
            return self.b(torch.tanh(self.a(x)))
    net, n = Net(), {}
    for name, m in net.named_modules():
        m.register_forward_pre_hook(lambda m, i, name=name: n.__setitem__(name, n.get(name, 0) + 1))
        m.register_forward_hook(lambda m, i, o, name=name: n.__setitem__(name, n.get(name, 0) - 1))
    checkpoint(net, torch.ones(2, 3), use_reentrant=False).sum().backward()
    assert n[""] == 1 and n["a"] == 0 and n["b"] == 1, n


@behaviour
def torch_backward_hook_dict():
    class Net(nn.Module):
        def __init__(self, d):
            super().__init__()
            self.l, self.d = nn.Linear(2, 2), d

        def forward(self, x=None):
            y = self.l(x)
            return {"y": y} if self.d else y
    seen = []
    for d in (False, True):
        net = Net(d)
        net.register_full_backward_hook(lambda m, gi, go: seen.append((m.d, len(gi))))
        y = net(x=torch.ones(1, 2, requires_grad=True))
        (y["y"] if d else y).sum().backward()
    assert seen == [(False, 0)], seen


@behaviour
def torch_encoder_padding():
    torch.manual_seed(0)
    net = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 1).eval()
    x, pad = torch.randn(2, 4, 8), torch.tensor([[False] * 4, [False, False, True, True]])
    with torch.no_grad():
        assert net(x, src_key_padding_mask=pad)[1, 2:].abs().max() == 0
    assert net(x, src_key_padding_mask=pad)[1, 2:].abs().max() > 0


@behaviour
def torch_compile_late_hooks():
    net, seen = nn.Sequential(nn.Linear(2, 2), nn.ReLU()), []
    run = torch.compile(net, backend="eager")
    run(torch.ones(1, 2))
    net[0].register_forward_hook(lambda m, i, o: seen.append(1))
    run(torch.ones(1, 2))
    first = len(seen)
    torch._dynamo.reset()
    run(torch.ones(1, 2))
    assert (first, len(seen)) == (0, 1), (first, len(seen))


def ranks(rank, folder):
    import torch.distributed as dist
    dist.init_process_group("gloo", init_method="file://" + folder + "/init", rank=rank, world_size=2)
    lin = nn.Linear(2, 1, bias=False)
    seen = []
    lin.weight.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.tolist()))
    net = nn.parallel.DistributedDataParallel(lin)
    net(torch.full((1, 2), float(rank + 1))).sum().backward()
    assert seen == [[[rank + 1.0] * 2]] and lin.weight.grad.tolist() == [[1.5, 1.5]], (seen, lin.weight.grad)
    # a receive that nobody waits for
    x = torch.zeros(2)
    if rank == 0:
        w = dist.irecv(x, 1)
        assert not x.any()
        w.wait()
        assert x.tolist() == [7, 7]
    else:
        import time
        time.sleep(0.5)
        dist.send(torch.full((2,), 7.0), 0)
    dist.destroy_process_group()


@behaviour
def torch_ddp_hook_is_local():
    with tempfile.TemporaryDirectory() as d:
        torch.multiprocessing.spawn(ranks, (d,), 2)


def partials(rank, folder):
    import torch.distributed as dist
    dist.init_process_group("gloo", init_method="file://" + folder + "/init", rank=rank, world_size=4)
    x = torch.full((1000,), 2.0 ** rank)
    dist.reduce(x, 0)
    got = x.unique().tolist()
    assert (got == [15]) if rank == 0 else len(got) > 1 and max(got) > 2 ** rank, (rank, got)
    dist.destroy_process_group()


@behaviour
def torch_gloo_reduce_partials():
    with tempfile.TemporaryDirectory() as d:
        torch.multiprocessing.spawn(partials, (d,), 4)


@behaviour
def torch_debugmode_hash():
    from torch.utils._debug_mode import DebugMode
    def hashes(x):
        with DebugMode() as m, DebugMode.log_tensor_hashes():
            x * 1.0
        return [c.log["hash"] if c.log else None for c in m.operators]
    a = torch.arange(12.0).reshape(3, 4)
    one, other, third = hashes(a), hashes(a.flip(0)), hashes(-a)
    assert one == other == third and one[0] is not None, (one, other, third)


@behaviour
def torch_sign_nan():
    assert torch.sign(torch.tensor(math.nan)).item() == 0 and F.relu(torch.tensor(math.nan)).isnan()


@behaviour
def torch_bf16_grad_accumulates():
    w = torch.zeros(1, dtype=torch.bfloat16, requires_grad=True)
    sum(w * 1 for _ in range(600)).sum().backward()
    assert w.grad.item() == 256, w.grad
    w.grad = None
    for _ in range(600):
        w.sum().backward()
    assert w.grad.item() == 256, w.grad


@behaviour
def torch_bf16_layer_norm_grad():
    torch.set_num_threads(1)

    def grad(norm, rows):
        w = torch.ones(2, dtype=torch.bfloat16, requires_grad=True)
        norm(torch.tensor([[-1.0, 1.0]]).repeat(rows, 1).bfloat16(), w).sum(0)[1].backward()
        return w.grad[1].item()
    assert grad(lambda x, w: F.layer_norm(x, (2,), w), 4096) == 256
    assert grad(lambda x, w: F.layer_norm(x, (2,), None, w), 4096) == 256
    assert grad(lambda x, w: F.rms_norm(x, (2,), w), 4096) == 4096


@behaviour
def torch_bf16_arange():
    def off(f, *a):
        return (f(*a, dtype=torch.bfloat16) != f(*a, dtype=torch.float64).bfloat16()).double().mean().item()
    assert 0.2 < off(torch.arange, 0, 10, 0.01) < 0.25 and off(torch.linspace, 0, 1, 1000) == 0


@behaviour
def torch_dropout_in_memory():
    def kept(x):
        torch.manual_seed(1)
        return F.dropout(x) != 0
    a, b = kept(torch.ones(32, 32)), kept(torch.ones(32, 32).t())
    assert torch.equal(a, b.t()) and not torch.equal(a, b)


@behaviour
def torch_clamp_gradient():
    x = torch.tensor([0.0, 0.5, 1.0], requires_grad=True)
    x.clamp(0, 1).sum().backward()
    assert x.grad.tolist() == [0, 1, 0], x.grad


@behaviour
def torch_optimizer_load_casts():
    def optimizer(dtype):
        p = nn.Parameter(torch.ones(3, dtype=dtype))
        return p, torch.optim.AdamW([p])
    p, o = optimizer(torch.float32)
    p.grad = torch.full((3,), 1e-3)
    o.step()
    q, into = optimizer(torch.bfloat16)
    into.load_state_dict(o.state_dict())
    got = into.state[q]
    assert got["exp_avg"].dtype == got["exp_avg_sq"].dtype == torch.bfloat16 and got["step"].dtype == torch.float32, got


@behaviour
def torch_prod_16_bits():
    x = torch.full((256,), 1 + 2.0 ** -7)
    got, right = torch.prod(x.bfloat16()).item(), torch.prod(x.double()).item()
    assert abs(got / right - 1) > 0.05 and abs(torch.prod(x).item() / right - 1) < 1e-4, (got, right)


def gradient(f, *shape):
    x = torch.ones(shape, dtype=torch.bfloat16, requires_grad=True)
    f(x).sum().backward()
    return x.grad.float().max().item()


@behaviour
def torch_pool_grad_16_bits():
    assert gradient(lambda x: F.adaptive_avg_pool2d(x, 64), 1, 1, 1, 1) == 256
    assert gradient(lambda x: F.avg_pool1d(x, 1025, 1), 1, 1, 2049) == 0.25
    one = torch.arange(2049).eq(1024).bfloat16()
    assert gradient(lambda x: F.max_pool1d(x * one, 1025, 1), 1, 1, 2049) == 256
    assert gradient(lambda x: F.pad(x, (0, 4095), mode="replicate"), 1, 1, 1) == 256
    assert gradient(lambda x: F.interpolate(x, size=4096), 1, 1, 1) == 4096


@behaviour
def torch_histc_bf16():
    x = torch.ones(4096)
    assert torch.histc(x.bfloat16(), 1, 0, 2).item() == 256 * torch.get_num_threads() and torch.histc(x, 1, 0, 2).item() == 4096


@behaviour
def torch_state_dict_steps():
    from torch.distributed.checkpoint.state_dict import get_optimizer_state_dict
    first = []
    for look in (False, True):
        net = nn.Linear(2, 2)
        o = torch.optim.Adam(net.parameters(), lr=0.1)
        if look:
            assert get_optimizer_state_dict(net, o)["state"]["weight"]["step"] == 1
        before = net.weight.detach().clone()
        net(torch.ones(1, 2)).sum().backward()
        o.step()
        first.append((net.weight - before).abs().max().item())
    assert abs(first[0] - 0.1) < 1e-5 and first[1] < 0.08, first
    net = nn.Linear(2, 2)
    o = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=0.1)
    got = get_optimizer_state_dict(net, o)["state"]["weight"]["momentum_buffer"]
    assert torch.allclose(got, 0.1 * net.weight), got


@behaviour
def torch_compile_casts():
    def there_and_back(a, dtype):
        return a.to(dtype).float() * 1
    x = torch.tensor([1e6, 1 + 2.0 ** -10, 300.4] * 8)
    compiled = torch.compile(there_and_back)
    for dtype, eager, fused in ((torch.float16, math.inf, 1e6), (torch.bfloat16, 999424.0, 1e6)):
        assert there_and_back(x, dtype)[0] == eager and compiled(x, dtype)[0] == fused, compiled(x, dtype)[:3]
    assert there_and_back(x, torch.int8)[2] == 44 and compiled(x, torch.int8)[2] == 127, compiled(x, torch.int8)[:3]


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
