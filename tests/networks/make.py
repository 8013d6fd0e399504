"""Makes the cases of one network: a clean pair and pairs with one fault, for one kind of noise.

GROUP/CASE/{device,bench}/step0/rank0 and GROUP/CASE/truth.json; equal files are hard links.
What is wrong is known from twins: the device with noise and the device with noise and fault.
"""
import copy
import hashlib
import json
import math
import os
import random
import shutil

import torch

import faults
from probe import BF16, F16, F32, SUMMED, Probe, Side, tree  # also finds writers
from writers import Msprobe

# Of each kind of noise, the bench's arithmetic and the device's.
NOISES = {
    "none": lambda: (Side(), Side()),
    "sum": lambda: (Side(), Side(how="f64", only=SUMMED)),
    "tf32": lambda: (Side(), Side(how="f64", only=SUMMED, tf32=True)),
    "bf16dev": lambda: (Side(), Side(BF16, "f32")),
    "bf16bf16": lambda: (Side(BF16, "f32"), Side(BF16, "f64")),
    "bf16steps": lambda: (Side(BF16, "f32"), Side(BF16, "f32", stepwise=True)),
    "autocast": lambda: (Side(autocast=True), Side(how="f64", autocast=True, only=SUMMED)),
    "fp16dev": lambda: (Side(scale=256.0), Side(F16, "f32", scale=256.0)),
}
NAMES = {F32: "float32", BF16: "bfloat16", F16: "float16"}


class Writer(Msprobe):
    """Msprobe that writes what a sibling has already written as a hard link."""

    def __init__(self, folder, task, known):
        super().__init__(folder, task)
        self.known = known

    def tensor(self, t, name):
        raw = t.view(torch.int16) if t.dtype in (BF16, F16) else t
        digest = hashlib.blake2b(raw.numpy().tobytes(), digest_size=16).digest()
        key = (self.task, name, t.dtype, t.shape, digest, getattr(t, "grad_wanted", None))
        old = self.known.get(key)
        if old is None:
            self.known[key] = (super().tensor(t, name), self.tensors)
            return self.known[key][0]
        leaf, tensors = old
        if "data_name" in leaf:
            os.link(os.path.join(tensors, name + ".pt"),
                    os.path.join(self.tensors, name + ".pt"))
        return leaf

    def json(self, name, obj):
        with open(os.path.join(self.folder, name), "w") as f:
            f.write(json.dumps(obj))   # with indents it takes as long as all the rest

    def op(self, e):
        """A gradient that nobody wants is null."""
        if e.direction == "backward" and not any(t is not None for t in e.args + e.output):
            return None
        return super().op(e)


def master(p):
    """A copy of a parameter in f32, with its gradient: what an optimizer works on."""
    m = torch.nn.Parameter(p.detach().float())
    m.grad = p.grad.float()
    return m


def run(made, side, fault=None, recompute=False, tie=None):
    """The records of one step on one side."""
    net = copy.deepcopy(made.net)
    net.recompute, net.tie = recompute, tie
    batches = [tree(b, lambda t: t.clone()) for b in made.batches]
    if fault is not None and fault.kind == "before":
        fault.fn(net, batches)
    if side.dtype != F32:
        net.to(side.dtype)
        batches = [tree(b, lambda t: t.to(side.dtype)) for b in batches]
    plan = made.plan
    torch.manual_seed(made.seed)
    with Probe(side, made.seed, fault) as probe:
        for batch in batches:
            with torch.autocast("cpu", dtype=BF16, enabled=side.autocast):
                loss = net(*batch)
                if plan.micro > 1:
                    loss = loss / plan.micro
            (loss * side.scale if side.scale != 1 else loss).backward()
        params = [p for p in net.parameters() if p.grad is not None]
        if side.dtype == F16:
            params = [master(p) for p in params]
        if side.scale != 1:
            for p in params:
                p.grad.mul_(1 / side.scale)
        if plan.clip:
            torch.nn.utils.clip_grad_norm_(params, plan.clip)
        if plan.opt != "none":
            plan.optimizer(params, plan.lr, plan.decay).step()
    return probe.events


def leaves(name, x):
    if isinstance(x, torch.Tensor) or not isinstance(x, (list, tuple, dict)):
        yield name, x
    elif isinstance(x, dict):
        for k, v in x.items():
            yield from leaves(f"{name}.{k}", v)
    else:
        for i, v in enumerate(x):
            yield from leaves(f"{name}.{i}", v)


def records(events):
    """{record: (op call, input or output, value)} in the order of the dump."""
    out = {}
    for e in events:
        k = e.key()
        for name, io, x in ((k + ".input", "input", e.args), (k + ".kwargs", "input", e.kwargs),
                            (k + ".output", "output", e.output)):
            for leaf, v in leaves(name, x):
                out[leaf] = (k, io, v)
    return out


def same(a, b):
    if isinstance(a, torch.Tensor) != isinstance(b, torch.Tensor):
        return False
    if not isinstance(a, torch.Tensor):
        return a == b or type(a) is type(b) and repr(a) == repr(b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.is_floating_point():
        kind = {2: torch.int16, 4: torch.int32, 8: torch.int64}[a.element_size()]
        a, b = a.view(kind), b.view(kind)
    return torch.equal(a, b)


def distance(a, b):
    """Relative distance of a from b: root mean square, and the largest by the largest."""
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor) or a.shape != b.shape:
        return math.inf, math.inf
    a, b = a.double(), b.double()
    if not a.numel():
        return 0.0, 0.0
    if not torch.equal(torch.isfinite(a), torch.isfinite(b)):
        return math.inf, math.inf
    ok = torch.isfinite(a)
    if not torch.equal(a[~ok].nan_to_num(7), b[~ok].nan_to_num(7)):
        return math.inf, math.inf
    a, b = a[ok], b[ok]
    if not a.numel():
        return 0.0, 0.0
    d, tiny = a - b, 1e-300
    return ((d.norm() / max(b.norm(), tiny)).item(),
            (d.abs().max() / max(b.abs().max(), tiny)).item())


def printed(t):
    """The statistics that a dump has of a tensor."""
    if not isinstance(t, torch.Tensor) or not t.is_floating_point() or not t.numel():
        return []
    t = t.float()
    return [t.max().item(), t.min().item(), t.mean().item(), t.norm().item()]


def moves(a, b):
    """By how much the printed statistics differ, of the largest of them."""
    a, b = printed(a), printed(b)
    if len(a) != len(b) or not a:
        return math.inf
    if any(math.isfinite(x) != math.isfinite(y) for x, y in zip(a, b)):
        return math.inf
    pairs = [(x, y) for x, y in zip(a, b) if math.isfinite(x)]
    top = max([abs(y) for _, y in pairs[:2]] + [1e-300])
    return max([abs(x - y) / (abs(y) if i == 3 and y else top)
                for i, (x, y) in enumerate(pairs)] + [0.0])


def finite(x):
    return min(x, 1e30)


def ratio(a, b):
    return finite(a / max(b, 1e-28)) if not math.isinf(a) else 1e30


class Group:
    """The cases of one network, one seed and one kind of noise."""

    def __init__(self, made, half, noise, folder, task=None):
        self.made, self.half, self.noise = made, half, noise
        self.name = f"{made.name}.{made.seed}-{noise}"
        self.folder = os.path.join(folder, self.name)
        self.r = random.Random(f"{made.name}/{made.seed}/{noise}")
        self.bench_side, self.device_side = NOISES[noise]()
        drawn = "statistics" if self.r.random() < 0.2 else "tensor"
        self.task = task or drawn
        self.known, self.failed, self.written = {}, [], None
        self.bench = run(made, self.bench_side)
        self.recompute = made.net.can_recompute and self.r.random() < 0.25 and \
            not any(faults.dropping(e) for e in self.bench if e.direction == "forward"
                    and e.op.endswith(".dropout"))
        self.clean = run(made, self.device_side, recompute=self.recompute)
        # What corresponds to the device's records, call by call.
        like = run(made, self.bench_side, recompute=True) if self.recompute else self.bench
        self.clean_rows, self.bench_rows = records(self.clean), records(like)

    def dtypes(self):
        pair = f"{NAMES[self.device_side.dtype]}/{NAMES[self.bench_side.dtype]}"
        return pair + ("+autocast bf16" if self.bench_side.autocast else "")

    def write(self, case, events, truth):
        top = os.path.join(self.folder, case)
        device, bench = (os.path.join(top, side, "step0", "rank0") for side in ("device", "bench"))
        Writer(device, self.task, self.known).write(events)
        if self.written:
            shutil.copytree(self.written, bench, copy_function=os.link)
        else:
            Writer(bench, self.task, self.known).write(self.bench)
            self.written = bench
        truth = {"id": case, **truth, "network": self.made.name, "seed": self.made.seed,
                 "half": self.half, "noise": self.noise, "dtype": self.dtypes(),
                 "task": self.task,
                 "structure": "recomputed on the device" if self.recompute else "same"}
        with open(os.path.join(top, "truth.json"), "w") as f:
            json.dump(truth, f, indent=1)
        return top

    def write_clean(self):
        n = sum(not same(v[2], self.bench_rows[k][2]) if k in self.bench_rows else 1
                for k, v in self.clean_rows.items())
        return self.write(self.name + "-clean", self.clean,
                          {"clean": True, "differing_clean_records": n})

    def judge(self, fault, events):
        """The truth about a faulty run, or None where nothing is to be seen of the fault."""
        rows = records(events)
        bad = [k for k, v in rows.items()
               if k not in self.clean_rows or not same(v[2], self.clean_rows[k][2])]
        if not bad or bad[0] not in self.clean_rows:
            return None
        first = bad[0]
        op, io, value = rows[first]
        if isinstance(value, bool) or not isinstance(value, (torch.Tensor, int, float)):
            return None
        clean, there = self.clean_rows[first][2], self.bench_rows.get(first, (0, 0, None))[2]
        if isinstance(value, torch.Tensor):
            rms, top = distance(value, clean)
            noise_rms, noise_top = distance(clean, there)
        else:
            rms = top = abs(value - clean) / max(abs(clean), 1e-300)
            noise_rms = noise_top = 0.0
        by_rms, by_max = ratio(rms, noise_rms), ratio(top, noise_top)
        if math.isinf(noise_rms) or by_rms < 3 and by_max < 10:
            return None
        truth = {"clean": False, "first_bad": first, "op": op, "io": io, "kind": fault.title,
                 "cat": fault.cat, "injected_at": fault.place, "effect": finite(rms),
                 "noise_there": noise_rms, "ratio_rms": by_rms, "ratio_max": by_max,
                 "affected": len(bad), "structure_changes": len(set(rows) ^ set(self.clean_rows))}
        if self.task == "statistics" and isinstance(value, torch.Tensor):
            move, noise = moves(value, clean), moves(clean, there)
            truth.update(stat_move=finite(move), stat_noise=finite(noise))
            if move < 3 * noise or move < 1e-6:
                return None
        return truth

    def write_faulty(self, number):
        """A case with a fault that can be seen; None after too many that cannot."""
        f32 = self.device_side.dtype == F32 and not self.device_side.autocast
        for _ in range(12):
            fault = faults.draw(self.r, self.clean, f32)
            if fault is None:
                continue
            try:
                events = run(self.made, self.device_side, fault, self.recompute)
            except (ArithmeticError, RuntimeError, IndexError, TypeError, ValueError) as e:
                self.failed.append(f"{fault.title} at {fault.place}: {str(e).splitlines()[0]}")
                continue
            truth = self.judge(fault, events)
            if truth is not None:
                return self.write(f"{self.name}-f{number}", events, truth)
        return None

    def write_ties(self):
        """Cases that differ without a fault: of equal values another one, another way to hide."""
        cases = []
        for name, title, impl in faults.TIES:
            ops = sorted({e.op for e in self.clean if e.op.endswith("." + name)})
            if not ops or self.r.random() < 0.4:
                continue
            fault = faults.Fault("impl", title, impl, ops[0])
            events = run(self.made, self.device_side, fault, self.recompute)
            if name == "masked_fill" and self.r.random() < 0.5:   # the program says so itself
                for e in events:
                    if e.op == ops[0] and e.direction == "forward":
                        e.args[2] = -65504.0
            rows = records(events)
            bad = [k for k, v in rows.items()
                   if k not in self.clean_rows or not same(v[2], self.clean_rows[k][2])]
            if not bad or not faults.harmless(name, rows, self.clean_rows, bad):
                continue
            cases.append(self.write(f"{self.name}-tie{len(cases)}", events, {
                "clean": True, "tie": True, "first_bad": bad[0], "kind": title,
                "affected": len(bad)}))
        return cases
