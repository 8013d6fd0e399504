"""Runs a network as one side of a pair: its arithmetic, its records, and at most one fault.

A Probe wraps the functions that msprobe records (its level L1, without the calls that only
change shapes or types). The arithmetic of a side stands beneath that wrapper: what is noted is
what "the device" computed. Each call is one node of autograd, so that a call has one backward
record, on both sides: the gradients of its outputs, and those of all tensors it was given.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data"))

import linecache  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

from recorder import Event, Recorder, flat, snap, swap  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
TORCH = os.path.dirname(os.path.dirname(torch.__file__))
BF16, F16, F32, F64 = torch.bfloat16, torch.float16, torch.float32, torch.float64

# What msprobe notes of what these networks call. It does not note views, cat, stack, clamp,
# conversions, what makes new tensors, negation, __getitem__.
RECORDED = {
    "Functional": (F, """
        conv1d conv2d conv3d conv_transpose1d conv_transpose2d avg_pool1d avg_pool2d max_pool1d
        max_pool2d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_max_pool2d dropout dropout2d
        relu relu_ glu hardtanh relu6 elu selu celu leaky_relu prelu logsigmoid gelu softsign
        softplus softmax log_softmax tanh sigmoid hardsigmoid linear bilinear silu hardswish
        embedding embedding_bag batch_norm instance_norm layer_norm group_norm
        local_response_norm ctc_loss nll_loss gaussian_nll_loss kl_div cross_entropy
        binary_cross_entropy binary_cross_entropy_with_logits smooth_l1_loss l1_loss mse_loss
        margin_ranking_loss hinge_embedding_loss cosine_embedding_loss pixel_shuffle interpolate
        pad pairwise_distance cosine_similarity one_hot triplet_margin_loss normalize fold
        multi_head_attention_forward scaled_dot_product_attention mish huber_loss"""),
    "Tensor": (torch.Tensor, """
        __add__ __and__ __eq__ __ge__ __gt__ __iadd__ __imul__ __isub__ __le__ __lt__ __matmul__
        __mul__ __ne__ __or__ __pow__ __radd__ __rmul__ __rpow__ __rsub__ __setitem__ __sub__
        __truediv__ abs add add_ addcdiv addcdiv_ addcmul addcmul_ addmm all amax amin any argmax
        argmin argsort baddbmm bincount bmm clamp_ clamp_max clamp_min clamp_min_ copysign cos
        cumprod cumsum diff div div_ dot eq erf exp exp_ expm1 fill_ flip gather ge gt index_add
        index_add_ index_copy index_fill index_put index_select inverse isfinite le lerp lerp_
        log log1p log_ log_softmax logical_and logical_not logsumexp lt masked_fill masked_fill_
        masked_select matmul max maximum mean min minimum mm mul mul_ mv narrow ne neg nonzero
        norm outer pow prod reciprocal relu relu_ rsqrt roll scatter scatter_ scatter_add
        scatter_add_ select sigmoid sigmoid_ sign sin softmax sort sqrt sqrt_ square std sub sub_
        sum t take_along_dim tanh tanh_ topk var where"""),
    "Torch": (torch, """
        cdist einsum logaddexp abs add addcmul addmm amax amin argmax argmin argsort baddbmm
        bincount bmm conv1d cos cosine_similarity cumprod cumsum div dot einsum eq erf exp expm1
        flip gather gt index_add index_select log log1p log_softmax logcumsumexp logsumexp lt
        masked_fill matmul max maximum mean min minimum mm mul mv neg nonzero norm outer pow
        prod reciprocal relu roll rsqrt rsub scatter scatter_add searchsorted sigmoid sign sin
        softmax sort sqrt square std sub sum t tanh topk var where"""),
}
# Computed by the side, but not noted.
SILENT = {"Tensor": (torch.Tensor, "clamp"), "Torch": (torch, "clamp")}

CONTRACT = set("""linear bilinear conv1d conv2d conv3d conv_transpose1d conv_transpose2d matmul bmm
    mm mv dot einsum addmm baddbmm outer __matmul__ multi_head_attention_forward""".split())
# What another machine adds up in another order or by another formula.
SUMMED = CONTRACT | set("""layer_norm batch_norm group_norm instance_norm local_response_norm
    normalize norm softmax log_softmax logsumexp logcumsumexp gelu silu elu selu celu mish
    softplus sigmoid tanh hardswish logsigmoid glu exp expm1 log log1p erf sin cos pow __pow__
    __rpow__ rsqrt sqrt reciprocal sum mean std var prod cumsum cumprod avg_pool1d avg_pool2d
    adaptive_avg_pool1d adaptive_avg_pool2d interpolate index_add scatter_add embedding
    embedding_bag ctc_loss nll_loss gaussian_nll_loss kl_div cross_entropy binary_cross_entropy
    binary_cross_entropy_with_logits smooth_l1_loss l1_loss mse_loss margin_ranking_loss
    hinge_embedding_loss cosine_embedding_loss pairwise_distance cosine_similarity
    triplet_margin_loss huber_loss softsign scaled_dot_product_attention""".split())
PAIRWISE = set("__add__ __sub__ __mul__ __truediv__ __radd__ __rmul__ __rsub__ add sub mul div "
               "maximum minimum where pow __pow__ matmul __matmul__".split())
# What torch's CPU has no 16-bit gradient of.
NOT_IN_16 = {"hardtanh", "relu6", "hardsigmoid", "hardswish", "mish", "celu", "selu", "softsign"}
INPLACE_DUNDER = {"__iadd__", "__imul__", "__isub__", "__setitem__"}


def tree(x, fn):
    """x with fn applied to its floating tensors."""
    if isinstance(x, torch.Tensor):
        return fn(x) if x.is_floating_point() else x
    if isinstance(x, torch.Size):
        return x
    if isinstance(x, (list, tuple)):
        return type(x)([tree(v, fn) for v in x])
    if isinstance(x, dict):
        return {k: tree(v, fn) for k, v in x.items()}
    return x


def bits10(x):
    """f32 rounded to 10 mantissa bits, as the operands of TF32."""
    n = x.float().contiguous().view(torch.int32)
    n = (n + 0xfff + ((n >> 13) & 1)) & ~0x1fff
    y = n.view(F32)
    return torch.where(torch.isfinite(x), y.to(x.dtype), x)


class RoundOperand(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return bits10(x)

    @staticmethod
    def backward(ctx, g):
        return g


class RoundGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return bits10(g)


class RoundStep(torch.autograd.Function):
    """One step of a formula whose results are kept in bf16, forward and backward."""

    @staticmethod
    def forward(ctx, x):
        return x.to(BF16).to(x.dtype)

    @staticmethod
    def backward(ctx, g):
        return g.to(BF16).to(g.dtype)


def attention(product, q, k, v, dim, heads, w, b, bias_k, bias_v, zero, p, w_out, b_out,
              training=True, key_padding_mask=None, need_weights=True, attn_mask=None, **_):
    """multi_head_attention_forward by single products, without dropout."""
    n, batch, d = q.shape[0], q.shape[1], dim // heads
    ws, bs = w.chunk(3), b.chunk(3)
    q, k, v = (product(F.linear, x, wi, bi).reshape(x.shape[0], batch * heads, d).transpose(0, 1)
               for x, wi, bi in zip((q, k, v), ws, bs))
    s = product(torch.bmm, q / d ** 0.5, k.transpose(1, 2))
    if attn_mask is not None:
        s = s.masked_fill(attn_mask, float("-inf")) if attn_mask.dtype == torch.bool \
            else s + attn_mask
    if key_padding_mask is not None:
        s = s.view(batch, heads, n, -1).masked_fill(
            key_padding_mask[:, None, None], float("-inf")).view(batch * heads, n, -1)
    a = torch.softmax(s, -1)
    y = product(torch.bmm, a, v).transpose(0, 1).reshape(n * batch, dim)
    return product(F.linear, y, w_out, b_out).view(n, batch, dim), None


def tf32_product(fn, *args, **kwargs):
    """A contraction in double of rounded operands; a bias is added afterwards, unrounded."""
    name = fn.__name__
    if name == "multi_head_attention_forward":
        return attention(tf32_product, *args, **kwargs)
    args, bias = list(args), None
    if name in ("linear", "bilinear") or name.startswith("conv"):
        at = 3 if name == "bilinear" else 2
        if len(args) > at:
            bias, args[at] = args[at], None
        elif kwargs.get("bias") is not None:
            bias, kwargs = kwargs["bias"], {**kwargs, "bias": None}
    elif name in ("addmm", "baddbmm"):
        bias, args = args[0], args[1:]
        fn = torch.mm if name == "addmm" else torch.bmm
    y = fn(*tree(args, lambda t: RoundOperand.apply(t)), **kwargs)
    y = RoundGradient.apply(y)
    if bias is not None:
        y = y + (bias.view(-1, *[1] * (y.dim() - 2)) if name.startswith("conv") else bias)
    return y


def step_log_softmax(x, dim):
    r = RoundStep.apply
    c = r(x - x.amax(dim, keepdim=True).detach())
    return r(c - r(torch.log(r(r(torch.exp(c)).sum(dim, keepdim=True)))))


def steps(name, args, kwargs):
    """A composite operator, each step kept in bf16; None: not one of them."""
    r, x = RoundStep.apply, args[0]
    if name == "softmax" and kwargs.get("dtype") is None:
        dim = kwargs.get("dim", args[1] if len(args) > 1 else -1)
        e = r(torch.exp(r(x - x.amax(dim, keepdim=True).detach())))
        return r(e / r(e.sum(dim, keepdim=True)))
    if name == "log_softmax" and kwargs.get("dtype") is None:
        return step_log_softmax(x, kwargs.get("dim", args[1] if len(args) > 1 else -1))
    if name == "gelu":
        if kwargs.get("approximate", "none") == "tanh":
            u = r(r(x + r(0.044715 * r(x * r(x * x)))) * 0.7978845608)
            return r(r(0.5 * x) * r(1 + r(torch.tanh(u))))
        return r(r(0.5 * x) * r(1 + r(torch.erf(r(x * 0.7071067812)))))
    if name == "silu":
        return r(x * r(1 / r(1 + r(torch.exp(-x)))))
    if name == "sigmoid":
        return r(1 / r(1 + r(torch.exp(-x))))
    if name == "softplus" and len(args) == 1 and not kwargs:
        # Of max(0, x) the half of both sides at 0, as the gradient of the whole has it.
        return r(0.5 * (x + x.abs()) + r(torch.log(r(1 + r(torch.exp(-x.abs()))))))
    if name == "layer_norm":
        dims = tuple(range(-len(args[1]), 0))
        w, b = (args[i] if len(args) > i else kwargs.get(k)
                for i, k in ((2, "weight"), (3, "bias")))
        eps = args[4] if len(args) > 4 else kwargs.get("eps", 1e-5)
        c = r(x - r(x.mean(dims, keepdim=True)))
        y = r(c * r(torch.rsqrt(r(r(r(c * c).mean(dims, keepdim=True)) + eps))))
        y = y if w is None else r(y * w)
        return y if b is None else r(y + b)
    if name == "cross_entropy" and args[1].dim() == 1 and len(args) == 2 and \
            not (set(kwargs) - {"reduction"}) and x.dim() == 2:
        return F.nll_loss(step_log_softmax(x, -1), args[1], **kwargs)
    return None


class Side:
    """How one side computes.

    dtype: of the model; autocast: to bf16; how: native (torch's own kernels), or each call in
    f32 or f64 and rounded once; only: the calls that `how` is for, None for all. tf32: operands
    of contractions rounded; steps: composite operators rounded at each step."""

    def __init__(self, dtype=F32, how="native", autocast=False, only=None, tf32=False,
                 stepwise=False, scale=1.0):
        self.dtype, self.how, self.autocast, self.only = dtype, how, autocast, only
        self.tf32, self.stepwise, self.scale = tf32, stepwise, scale

    def wide(self, name):
        if self.how == "native":
            return False
        return self.only is None or name in self.only

    @staticmethod
    def out_dtype(name, args, kwargs, inplace):
        ts = [t for t in flat([args, kwargs]) if t.is_floating_point()]
        if kwargs.get("dtype") is not None:
            return kwargs["dtype"]
        if inplace or len({t.dtype for t in ts}) == 1:
            return ts[0].dtype
        both = [t for t in flat(list(args)) if t.is_floating_point()]
        if name in PAIRWISE and len(both) == 2:
            return torch.result_type(*both)
        return F32

    def compute(self, name, fn, args, kwargs, inplace=False):
        ts = [t for t in flat([args, kwargs]) if t.is_floating_point()]
        if name in ("dropout", "dropout2d"):
            return self.drop(args, kwargs)
        if self.autocast and name in ("layer_norm", "group_norm"):
            # As accelerators do; torch's CPU refuses two dtypes here.
            args, kwargs = tree([args, kwargs], lambda t: t.float())
        if name in NOT_IN_16 and not self.wide(name) and ts[0].dtype == BF16:
            a, k = tree([args, kwargs], lambda t: t.float())
            return fn(*a, **k).to(BF16)
        if not ts or not self.wide(name):
            return fn(*args, **kwargs)
        if self.autocast:
            return self.cast_compute(name, fn, args, kwargs)
        out = self.out_dtype(name, args, kwargs, inplace)
        kwargs = {k: v for k, v in kwargs.items() if k != "dtype"}
        wide = F32 if self.how == "f32" or self.stepwise else F64
        a, k = tree([args, kwargs], lambda t: t.to(wide))
        y = steps(name, a, k) if self.stepwise else None
        if y is None and self.tf32 and name in CONTRACT:
            y = tf32_product(fn, *a, **k)
        if y is None:
            y = fn(*a, **k)
        self.keep_running(name, args, a)
        return tree(y, lambda t: t.to(out))

    @staticmethod
    def keep_running(name, args, wide):
        """Running statistics are arguments that the call changes."""
        if name in ("batch_norm", "instance_norm"):
            for old, new in zip(args[1:3], wide[1:3]):
                if isinstance(old, torch.Tensor) and new is not old:
                    old.copy_(new.detach())

    def cast_compute(self, name, fn, args, kwargs):
        """What autocast gives, in double: torch says which types, from a trial."""
        if name in NOT_IN_16:
            a, k = tree([args, kwargs], lambda t: t.double())
            return fn(*a, **k).to(args[0].dtype)
        with torch.no_grad():
            a, k = swap([args, kwargs], iter([t.detach().clone() for t in flat([args, kwargs])]))
            trial = flat(fn(*a, **k))
        # bilinear multiplies in bf16 as well, and adds its bias in f32.
        low = name in CONTRACT and (name == "bilinear" or any(t.dtype == BF16 for t in trial))
        with torch.autocast("cpu", enabled=False):
            a, k = tree([args, kwargs], lambda t: (t.to(BF16) if low else t).double())
            y = fn(*a, **k)
            self.keep_running(name, args, a)
            it = iter(trial)
            return swap(y, iter([t.to(next(it).dtype) for t in flat(y)]))

    def drop(self, args, kwargs):
        p = kwargs.get("p", args[1] if len(args) > 1 else 0.5)
        training = kwargs.get("training", args[2] if len(args) > 2 else True)
        x = args[0]
        if not training or p == 0:
            return x * 1
        return (x * self.mask(x, p)).to(x.dtype)

    def mask(self, x, p):
        """Both sides draw the same."""
        g = torch.Generator().manual_seed(1000003 * self.seed + self.number)
        keep = torch.rand(x.shape, generator=g) >= p
        return keep.to(x.dtype) / (1 - p)


# The gradient of what keeps its output for the backward call, from a wrong output.
SAVED = {
    "tanh": lambda g, y, d: g * (1 - y * y), "sigmoid": lambda g, y, d: g * y * (1 - y),
    "exp": lambda g, y, d: g * y, "sqrt": lambda g, y, d: g / (2 * y),
    "rsqrt": lambda g, y, d: -0.5 * g * y ** 3, "reciprocal": lambda g, y, d: -g * y * y,
    "relu": lambda g, y, d: g * (y > 0),
    "softmax": lambda g, y, d: y * (g - (g * y).sum(d, keepdim=True)),
    "log_softmax": lambda g, y, d: g - torch.exp(y) * g.sum(d, keepdim=True),
}


class Call(torch.autograd.Function):
    """One call: inside it has a graph of its own, outside it is one node."""

    @staticmethod
    def forward(ctx, box, *xs):
        ctx.set_materialize_grads(False)
        inner = []
        for i, x in enumerate(xs):
            t = x.detach()
            if box.inplace and i == 0:
                t = t.clone()
            inner.append(t.requires_grad_(x.requires_grad) if x.is_floating_point() else t)
        with torch.enable_grad():
            y = box.run([t * 1 if box.inplace and i == 0 else t for i, t in enumerate(inner)])
        ys = flat(y)
        ctx.box, ctx.inner, ctx.outer = box, inner, [t for t in ys if t.is_floating_point()]
        out = [t.detach() for t in ys]
        keep = {x.data_ptr() for x in xs}
        out = [t.clone() if t.data_ptr() in keep and t.numel() else t for t in out]
        out = box.spoil(xs, out)
        if box.inplace:
            xs[0].copy_(out[0])
            ctx.mark_dirty(xs[0])
            out[0] = xs[0]
        ctx.mark_non_differentiable(*[t for t in out if not t.is_floating_point()])
        box.y = y
        return tuple(out)

    @staticmethod
    def backward(ctx, *grads):
        box = ctx.box
        box.probe.depth += 1
        try:
            # Integer outputs have no gradient.
            given = [g for g, t in zip(grads, flat(box.y)) if t.is_floating_point()]
            pairs = [(t, g) for t, g in zip(ctx.outer, given)
                     if g is not None and t.requires_grad]
            want = [t for t in ctx.inner if t.requires_grad]
            got = torch.autograd.grad([t for t, _ in pairs], want, [g for _, g in pairs],
                                      allow_unused=True) if pairs else [None] * len(want)
            it = iter(got)
            out = [next(it) if t.requires_grad else None for t in ctx.inner]
            out = box.spoil_back(ctx.inner, given, out)
            box.note(given, out)
            return (None, *out)
        finally:
            box.probe.depth -= 1


class Box:
    """What a Call needs to know."""

    def __init__(self, probe, event, name, fn, args, kwargs, inplace):
        self.probe, self.event, self.name, self.fn = probe, event, name, fn
        self.args, self.kwargs, self.inplace = args, kwargs, inplace
        self.fault = probe.fault if probe.fault and probe.fault.hits(event) else None
        self.wrong = None   # a wrong output that the backward call reads

    def run(self, inner):
        args, kwargs = swap([self.args, self.kwargs], iter(inner))
        self.probe.side.number = self.event.call

        def compute(fn, *a, **k):
            return self.probe.side.compute(self.name, fn, a, k, self.inplace)

        if self.fault and self.fault.kind == "impl":
            return self.fault.fn(compute, self.fn, args, kwargs)
        return compute(self.fn, *args, **kwargs)

    def spoil(self, xs, out):
        if self.fault and self.fault.kind == "out":
            new = self.fault.fn(self, xs, [t.clone() for t in out])
            out = [n.to(t.dtype).reshape(t.shape) for n, t in zip(new, out)]
            self.wrong = out[0]
        if self.fault and self.fault.kind == "after":
            self.fault.fn(self, xs, out)
        old = self.probe.last.get(self.name)
        self.before = old if old is not None and old.shape == out[0].shape else None
        if self.probe.fault and out:
            self.probe.last[self.name] = out[0].clone()
        return out

    def dim(self):
        return self.kwargs.get("dim", self.args[1] if len(self.args) > 1 else -1)

    def spoil_back(self, inner, given, out):
        if self.wrong is not None and self.name in SAVED and not self.inplace:
            g = SAVED[self.name](given[0].double(), self.wrong.double(), self.dim()
                                 if "softmax" in self.name else None)
            out = [g.to(inner[0].dtype)] + out[1:]
        if self.fault and self.fault.kind == "grad":
            out = self.fault.fn(self, inner, given, list(out))
            out = [g if g is None else g.to(t.dtype).reshape(t.shape)
                   for g, t in zip(out, inner)]
        return out

    def note(self, given, out):
        if self.name in ("dropout", "dropout2d"):
            p = self.kwargs.get("p", self.args[1] if len(self.args) > 1 else 0.5)
            if p == 0:   # msprobe leaves it out
                return
            out = out + [None]
        e = Event("api", self.event.op, self.event.call, "backward")
        e.args, e.output = snap(list(given)), snap(list(out))
        self.probe.events.append(e)


class Probe(Recorder):
    """Notes what one side does. fault: see faults.py."""

    def __init__(self, side, seed, fault=None):
        super().__init__()
        self.side, self.fault, self.last, self.paths = side, fault, {}, {}
        side.seed, side.number = seed, 0

    def place(self, path):
        """How a source file is called in the dump; None: it is left out."""
        if path not in self.paths:
            name = None
            if path.startswith(TORCH):
                name = path
            elif os.path.dirname(os.path.abspath(path)) == HERE and \
                    os.path.basename(path).startswith("zoo"):
                name = "/home/user/networks/" + os.path.basename(path)
            self.paths[path] = name
        return self.paths[path]

    def stack(self):
        frames, f = [], sys._getframe(2)
        while f is not None:
            name = self.place(f.f_code.co_filename)
            if name:
                code = linecache.getline(f.f_code.co_filename, f.f_lineno).strip()
                frames.append((name, f.f_lineno, f.f_code.co_name, code))
            f = f.f_back
        return frames

    def api(self, family, name, fn):
        call = super().api(family, name, fn)
        if name != "normalize":
            return call
        # Into a given tensor, as spectral norms do, its parts are noted and not the whole.
        return lambda *a, **k: fn(*a, **k) if "out" in k else call(*a, **k)

    def one(self, family, name, fn, args, kwargs):
        op = f"{family}.{name}"
        n = self.calls.get(op, 0)
        self.calls[op] = n + 1
        inplace = name in INPLACE_DUNDER or bool(kwargs.get("inplace")) or \
            (name.endswith("_") and not name.endswith("__"))
        e = Event("api", op, n, "forward", stack=self.stack())
        e.args, e.kwargs = snap(args), snap(kwargs)
        self.events.append(e)
        y = self.apply(e, name, fn, args, kwargs, inplace)
        # An in-place call's output is its argument, after.
        e.output = snap(list(y) if isinstance(y, (list, tuple)) else
                        [args[0] if name == "__setitem__" else y])
        return y

    def apply(self, e, name, fn, args, kwargs, inplace):
        box = Box(self, e, name, fn, args, kwargs, inplace)
        if name == "__setitem__":
            return fn(*args, **kwargs)
        tensors = flat([args, kwargs])
        if torch.is_grad_enabled() and any(t.requires_grad for t in tensors):
            ys = Call.apply(box, *tensors)
            return swap(box.y, iter(ys))
        if inplace or "out" in kwargs:
            return self.in_place(box, tensors)
        y = box.run(tensors)
        return swap(y, iter(box.spoil(tensors, flat(y))))

    def in_place(self, box, tensors):
        if "out" in box.kwargs:
            return box.fn(*box.args, **box.kwargs)
        y = flat(box.run([tensors[0].detach().clone(), *tensors[1:]]))
        y = box.spoil(tensors, y)
        tensors[0].data.copy_(y[0])
        return box.args[0]

    def silent(self, name, fn):
        """A function that is computed wide where torch cannot, but not noted."""
        def call(x, *args, **kwargs):
            if self.depth or x.dtype != F16:
                return fn(x, *args, **kwargs)
            return fn(x.float(), *args, **kwargs).to(F16)
        return call

    def __enter__(self):
        self.saved = []
        for spaces, wrap in ((RECORDED, None), (SILENT, self.silent)):
            for family, (space, names) in spaces.items():
                for name in names.split():
                    if not hasattr(space, name):
                        continue
                    own = name in vars(space)
                    fn = getattr(space, name)
                    self.saved.append((space, name, fn, own))
                    setattr(space, name, wrap(name, fn) if wrap else self.api(family, name, fn))
        return self

    def __exit__(self, *_):
        for space, name, fn, own in reversed(self.saved):
            if own:
                setattr(space, name, fn)
            else:
                delattr(space, name)
