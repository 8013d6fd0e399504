"""Runs a network and notes every call, as the recorders of msprobe and ptdbg_ascend do.

A Recorder wraps the functions named in OPS, the methods named in METHODS and the call of
every module. Each call becomes one Event, its backward pass another, in the order in which
they complete. What files these events become is writers.py's business.
"""
import contextlib
import linecache
import os
import sys

import torch
from torch import nn

OPS = {
    "Functional": (torch.nn.functional,
                   "embedding linear layer_norm softmax gelu cross_entropy dropout"),
    "Torch": (torch, "arange pow reciprocal einsum cat cos sin chunk neg matmul"),
    "Tensor": (torch.Tensor, "__getitem__ __add__ __mul__ __truediv__ reshape permute "
               "transpose masked_fill float"),
    "Distributed": (torch.distributed, "all_reduce"),
}
# What another device computes in another order, and so rounds differently.
NOISY = set("linear layer_norm softmax gelu cross_entropy pow reciprocal einsum cos sin "
            "matmul".split())
LEVEL = {}   # of that noise, where it is not 1e-7
# The model, and where it seems to have run.
USER = "/home/user/acctools/examples/demo/"
MODEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/demo/model.py")
MODEL = os.path.normpath(MODEL)


class Event:
    """One op call in one direction. kind: api, module, grad."""

    def __init__(self, kind, op, call, direction, **fields):
        self.kind, self.op, self.call, self.direction = kind, op, call, direction
        self.args, self.kwargs, self.output = [], {}, []   # grads: input is args
        self.parameters = {}
        self.stack, self.parent = None, None
        self.__dict__.update(fields)

    def key(self):
        if self.kind == "grad":
            return f"{self.op}.parameters_grad.{self.call}"
        if self.kind == "module":
            return f"{self.op}.{self.direction}.{self.call}"
        return f"{self.op}.{self.call}.{self.direction}"


def snap(x):
    """A value that later in-place work does not change."""
    if isinstance(x, torch.Tensor):
        c = x.detach().clone(memory_format=torch.contiguous_format)   # no call that is recorded
        c.grad_wanted = x.requires_grad
        return c
    if isinstance(x, torch.Size):
        return x
    if isinstance(x, (list, tuple)):
        return [snap(v) for v in x]
    if isinstance(x, dict):
        return {k: snap(v) for k, v in x.items()}
    return x


def flat(x):
    if isinstance(x, torch.Tensor):
        return [x]
    if isinstance(x, (list, tuple)):
        return [t for v in x for t in flat(v)]
    if isinstance(x, dict):
        return [t for v in x.values() for t in flat(v)]
    return []


def swap(x, it):
    """x with its tensors replaced by the next of `it`, in the order of flat()."""
    if isinstance(x, torch.Tensor):
        return next(it)
    if isinstance(x, torch.Size):
        return x
    if isinstance(x, (list, tuple)):
        return type(x)([swap(v, it) for v in x])
    if isinstance(x, dict):
        return {k: swap(v, it) for k, v in x.items()}
    return x


class In(torch.autograd.Function):
    """Passes the inputs through; its backward sees their gradients, after the op's own."""

    @staticmethod
    def forward(ctx, box, *xs):
        ctx.set_materialize_grads(False)
        ctx.box = box
        return tuple(x.view_as(x) for x in xs)

    @staticmethod
    def backward(ctx, *grads):
        return (None,) + ctx.box(grads)


class Out(torch.autograd.Function):
    @staticmethod
    def forward(ctx, keep, *ys):
        ctx.set_materialize_grads(False)
        ctx.keep = keep
        return tuple(y.view_as(y) for y in ys)

    @staticmethod
    def backward(ctx, *grads):
        ctx.keep.extend(grads)
        return (None,) + grads


class Noise(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rng, x, level):
        ctx.rng, ctx.level = rng, level
        return torch.mul(x, 1 + level * torch.randn(x.shape, generator=rng))

    @staticmethod
    def backward(ctx, g):   # torch.mul is not recorded, Tensor.__mul__ would be
        noise = torch.randn(g.shape, generator=ctx.rng).mul(ctx.level).add(1)
        return None, torch.mul(g, noise), None


class Recorder:
    """noise: a seed, or None for exact results. faults: {(op, call): function of the output,
    given (inputs, output)}; back_faults: of the gradients of the inputs, given (inputs, them)."""

    def __init__(self, noise=None, faults=None, back_faults=None):
        self.events, self.calls, self.scope = [], {}, []
        self.rng = None if noise is None else torch.Generator().manual_seed(noise)
        self.faults, self.back_faults = faults or {}, back_faults or {}
        self.depth = 0
        self.names = {}
        # Autograd calls from nowhere: every backward call has the stack of the loss.
        self.backward_stack = [(USER + "model.py", *self.where("loss.backward()"))]

    @staticmethod
    def where(code):
        with open(MODEL) as f:
            n = [line.strip() for line in f].index(code) + 1
        return n, "step", code

    # -- calls ------------------------------------------------------------------------

    def stack(self):
        """The frames of the model and of torch; those of these scripts are nobody's business."""
        frames, f = [], sys._getframe(2)
        while f is not None:
            path = f.f_code.co_filename
            model = os.path.samefile(path, MODEL) if os.path.exists(path) else False
            if model or path.startswith(os.path.dirname(torch.__file__)):
                code = linecache.getline(path, f.f_lineno).strip()
                path = USER + "model.py" if model else path
                frames.append((path, f.f_lineno, f.f_code.co_name, code))
            f = f.f_back
        return frames

    def api(self, family, name, fn):
        def call(*args, **kwargs):
            if self.depth:
                return fn(*args, **kwargs)
            self.depth += 1
            try:
                return self.one(family, name, fn, args, kwargs)
            finally:
                self.depth -= 1
        return call

    def one(self, family, name, fn, args, kwargs):
        op = f"{family}.{name}"
        n = self.calls.get(op, 0)
        self.calls[op] = n + 1
        e = Event("api", op, n, "forward", stack=self.stack())
        e.parent = self.scope[-1] if self.scope else None
        e.args, e.kwargs = snap(args), snap(kwargs)
        args, kwargs, keep = self.enter(e, args, kwargs)
        y = fn(*args, **kwargs)
        if family == "Distributed":   # works in place: the output is the arguments, after
            e.output = snap(args) + list(snap(kwargs).values())
            self.events.append(e)
            return y
        if name in NOISY and self.rng is not None:
            y = Noise.apply(self.rng, y, LEVEL.get(name, 1e-7))
        if (op, n) in self.faults:
            y = self.faults[op, n](args, y)
        return self.leave(e, y, keep)

    def enter(self, e, args, kwargs):
        """Have the gradients of this call noted when they come."""
        tensors = flat([args, kwargs])
        wanted = [t for t in tensors if t.requires_grad]
        if not wanted:
            return args, kwargs, None
        keep = []

        def box(grads):
            if e.kind == "api" and (e.op, e.call) in self.back_faults:
                grads = self.back_faults[e.op, e.call](wanted, grads)
            it = iter(grads)
            out = [next(it) if t.requires_grad else None for t in tensors]
            while out and out[-1] is None:
                out.pop()
            back = Event(e.kind, e.op, e.call, "backward")
            back.parent = e.parent and e.parent.replace(".forward.", ".backward.")
            back.args, back.output = snap(keep), snap(out)
            back.stack = self.backward_stack
            self.events.append(back)
            return grads

        new = iter(In.apply(box, *wanted))
        it = iter([next(new) if t.requires_grad else t for t in tensors])
        return swap(args, it), swap(kwargs, it), keep

    def leave(self, e, y, keep):
        ys = flat(y)
        if keep is not None and any(t.requires_grad for t in ys):
            new = iter(Out.apply(keep, *[t for t in ys if t.requires_grad]))
            y = swap(y, iter([next(new) if t.requires_grad else t for t in ys]))
        e.output = snap(y if isinstance(y, (list, tuple)) else [y])
        e.single = not isinstance(y, (list, tuple))
        self.events.append(e)
        return y

    # -- modules ----------------------------------------------------------------------

    def module(self, fn):
        def call(mod, *args, **kwargs):
            if mod not in self.names or not self.names[mod]:
                return fn(mod, *args, **kwargs)
            op = f"Module.{self.names[mod]}.{type(mod).__name__}"
            n = self.calls.get(op, 0)
            self.calls[op] = n + 1
            e = Event("module", op, n, "forward", stack=self.stack())
            e.parent = self.scope[-1] if self.scope else None
            e.args, e.kwargs = snap(args), snap(kwargs)
            e.parameters = {k: snap(p) for k, p in mod.named_parameters(recurse=False)}
            self.scope.append(e.key())
            args, kwargs, keep = self.enter(e, args, kwargs)
            y = self.leave(e, fn(mod, *args, **kwargs), keep)
            self.scope.pop()
            return y
        return call

    def watch(self, model):
        """Note the parameters' gradients, a module's together."""
        self.names = {m: n for n, m in model.named_modules()}
        for mod, name in self.names.items():
            own = dict(mod.named_parameters(recurse=False))
            got = {}

            def hook(g, k, got=got, own=own, mod=mod, name=name):
                got[k] = snap(g)
                if len(got) == len(own):
                    op = f"Module.{name}.{type(mod).__name__}"
                    n = self.calls.get(op + ".grad", 0)
                    self.calls[op + ".grad"] = n + 1
                    e = Event("grad", op, n, "")
                    e.output = {k: [got[k]] for k in own}
                    self.events.append(e)
                    got.clear()

            for k, p in own.items():
                p.register_hook(lambda g, k=k, hook=hook: hook(g, k))

    @contextlib.contextmanager
    def recording(self, model=None):
        saved = []
        for family, (space, names) in OPS.items():
            for name in names.split():
                fn = getattr(space, name)
                saved.append((space, name, fn))
                setattr(space, name, self.api(family, name, fn))
        if model is not None:
            self.watch(model)
        inner = nn.Module.__call__
        nn.Module.__call__ = self.module(inner)
        try:
            yield self
        finally:
            nn.Module.__call__ = inner
            for space, name, fn in saved:
                setattr(space, name, fn)
