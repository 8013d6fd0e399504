"""What can be wrong with one call.

A fault is one of: out (of the outputs of a call), impl (another formula, with its own
gradient), grad (of what a backward call gives), after (the call overwrites what is not its
own), weights and input (before the step), config (impl, in all calls of an operator).
"""
import math

import torch
import torch.nn.functional as F

from probe import flat

BF16, F16 = torch.bfloat16, torch.float16


class Fault:
    def __init__(self, kind, title, fn, op=None, call=None, cat=None):
        self.kind, self.title, self.fn, self.op, self.call = kind, title, fn, op, call
        self.cat = cat or {"out": "forward", "impl": "forward", "grad": "backward",
                           "after": "neighbour"}.get(kind, kind)

    def hits(self, e):
        return self.op == e.op and self.call in (None, e.call)

    @property
    def place(self):
        return self.op and (self.op if self.call is None else f"{self.op}.{self.call}")


# --- of one tensor: another one ---

def on(fn):
    """A change of one tensor as a fault of the first output."""
    def out(box, xs, ys):
        return [fn(ys[0].float(), box).to(ys[0].dtype)] + ys[1:]
    return out


def rows(x):
    return x.reshape(-1, x.shape[-1]) if x.dim() > 1 else x.reshape(-1, 1)


def scaled(s):
    return lambda x, box: x * s


def spot(x):
    """The place of an element that is not small."""
    f = torch.nan_to_num(x.reshape(-1), 0, 0, 0).abs()
    return int(f.argsort()[-max(1, f.numel() // 3):][0])


def element(change):
    def fn(x, box):
        y = x.clone().reshape(-1)
        i = spot(x)
        y[i] = change(y[i])
        return y.reshape(x.shape)
    return fn


def channel(s, dim):
    def fn(x, box):
        y = x.clone()
        d = dim if x.dim() > abs(dim) - (dim < 0) else -1
        y.select(d, x.shape[d] // 2).mul_(s)
        return y
    return fn


def row(change):
    def fn(x, box):
        y = x.clone().reshape(x.shape[0], -1) if x.dim() > 1 else x.clone().reshape(-1, 1)
        y[y.shape[0] // 2] = change(y[y.shape[0] // 2])
        return y.reshape(x.shape)
    return fn


def tail(what):
    def fn(x, box):
        y = x.clone().reshape(-1)
        k = max(1, y.numel() // 4)
        if what == "zero":
            y[-k:] = 0
        elif what == "repeat":
            y[-k:] = y[:-k][-k:].clone() if y.numel() >= 2 * k else y[0]
        return y.reshape(x.shape)
    return fn


def swapped_rows(x, box):
    y = rows(x).clone()
    y[[0, -1]] = y[[-1, 0]].clone()
    return y.reshape(x.shape)


def off_by_one(x, box):
    return x.reshape(-1).roll(1).reshape(x.shape) if x.dim() < 2 else x.roll(1, -1)


def transposed(x, box):
    return x.transpose(-1, -2)


def stale(x, box):
    old = box.probe.last.get(box.name)
    return old.float() if old is not None and old.shape == x.shape else torch.zeros_like(x)


def saturated(x, box):
    top = 0.4 * torch.nan_to_num(x, 0, 0, 0).abs().max()
    return torch.where(torch.isfinite(x), x.clamp(-top, top), x)


def rounded(dtype):
    return lambda x, box: x.to(dtype).float()


def drift(x, box):
    """A part of it too large by a constant."""
    y = x.clone().reshape(-1)
    k = max(1, y.numel() // 2)
    y[:k] += 0.05 * torch.nan_to_num(x, 0, 0, 0).pow(2).mean().sqrt()
    return y.reshape(x.shape)


def flipped_bit(x, box):
    y = x.clone().reshape(-1)
    i = spot(x)
    y[i:i + 1] = (y[i:i + 1].view(torch.int32) ^ (1 << 21)).view(torch.float32)
    return y.reshape(x.shape)


# title, least elements, least dimensions, change
TENSOR = [
    ("one element x1.5", 2, 0, element(lambda v: v * 1.5)),
    ("sign of one element", 2, 0, element(lambda v: -v)),
    ("one element zero", 2, 0, element(lambda v: v * 0)),
    ("a bit flipped in one element", 2, 0, flipped_bit),
    ("NaN in one element", 1, 0, element(lambda v: v * math.nan)),
    ("infinity in one element", 1, 0, element(lambda v: v * 0 + math.inf)),
    ("one channel x1.03", 4, 2, channel(1.03, 1)),
    ("one column x1.1", 4, 2, channel(1.1, -1)),
    ("one row x0.9", 4, 2, row(lambda v: v * 0.9)),
    ("one row zero", 4, 2, row(lambda v: v * 0)),
    ("scale 1.001", 1, 0, scaled(1.001)),
    ("scale 1.01", 1, 0, scaled(1.01)),
    ("scale 1.1", 1, 0, scaled(1.1)),
    ("scale 2", 1, 0, scaled(2.0)),
    ("sign", 1, 0, scaled(-1.0)),
    ("last tile lost", 4, 0, tail("zero")),
    ("last tile repeated", 4, 0, tail("repeat")),
    ("zero", 1, 0, scaled(0.0)),
    ("stale", 2, 0, stale),
    ("off by one", 3, 0, off_by_one),
    ("rows swapped", 4, 2, swapped_rows),
    ("saturated", 4, 0, saturated),
    ("shifted by a constant", 4, 0, drift),
]
ROUNDED = [("rounded to bf16", rounded(BF16)), ("rounded to fp16", rounded(F16))]


# --- other formulas of one operator: fn(compute, fn, args, kwargs) ---

def arg(args, kwargs, at, name, default=None):
    return args[at] if len(args) > at else kwargs.get(name, default)


def put(args, kwargs, at, name, value):
    if len(args) > at:
        args = list(args)
        args[at] = value
        return args, kwargs
    return args, {**kwargs, name: value}


def with_arg(at, name, change):
    """The same call with one argument changed; None: not to be had here."""
    def impl(compute, fn, args, kwargs):
        old = arg(args, kwargs, at, name)
        args, kwargs = put(args, kwargs, at, name, change(old))
        return compute(fn, *args, **kwargs)
    return impl


def through(x, dtype):
    """x as dtype holds it, gradients too."""
    return x.to(dtype).to(x.dtype)


def cast_operands(dtype):
    def impl(compute, fn, args, kwargs):
        n = 3 if fn.__name__ == "multi_head_attention_forward" else 2
        args = [through(a, dtype) if isinstance(a, torch.Tensor) and i < n and
                a.is_floating_point() else a for i, a in enumerate(args)]
        return compute(fn, *args, **kwargs)
    return impl


def cut_k(compute, fn, args, kwargs):
    """The last part of the inner dimension is not added up."""
    x, rest = args[0], list(args[1:])
    dim = 1 if fn.__name__.startswith("conv") else -1
    k = x.shape[dim]
    keep = torch.ones(k, dtype=x.dtype)
    keep[-max(1, k // 8):] = 0
    shape = [1] * x.dim()
    shape[dim] = k
    return compute(fn, x * keep.view(shape), *rest, **kwargs)


def chunked(compute, fn, args, kwargs):
    """Products added up a few at a time in bf16."""
    x, w, rest = args[0], args[1], list(args[2:])
    linear = fn.__name__ == "linear"
    k, step, s = x.shape[-1], max(2, x.shape[-1] // 8), None
    for i in range(0, k, step):
        part = compute(fn, x[..., i:i + step],
                       w[..., i:i + step] if linear else w[..., i:i + step, :])
        s = through(part if s is None else s + part, BF16)
    bias = rest[0] if rest else kwargs.get("bias")
    return s if bias is None else s + bias


def square_weight(compute, fn, args, kwargs):
    return compute(fn, args[0], args[1].transpose(-1, -2), *args[2:], **kwargs)


def swapped(compute, fn, args, kwargs):
    return compute(fn, args[1], args[0], *args[2:], **kwargs)


def first_only(compute, fn, args, kwargs):
    """The second operand is lost: a residual that is not added, a factor that is not applied."""
    return args[0] * 1


def gelu_other(compute, fn, args, kwargs):
    old = kwargs.get("approximate", "none")
    return compute(fn, *args, approximate="none" if old == "tanh" else "tanh")


def quick_gelu(compute, fn, args, kwargs):
    return args[0] * compute(torch.sigmoid, 1.702 * args[0])


def silu_beta(compute, fn, args, kwargs):
    return args[0] * compute(torch.sigmoid, 1.1 * args[0])


def rational_tanh(compute, fn, args, kwargs):
    x = args[0].float().clamp(-3, 3)
    return (x * (27 + x * x) / (27 + 9 * x * x)).to(args[0].dtype)


def hard_sigmoid(compute, fn, args, kwargs):
    return (args[0].float() / 6 + 0.5).clamp(0, 1).to(args[0].dtype)


def low_argument(compute, fn, args, kwargs):
    return compute(fn, through(args[0], BF16), *args[1:], **kwargs)


def norm_n1(compute, fn, args, kwargs):
    """Variance by n - 1: the normalised values shrink."""
    bias = arg(args, kwargs, 3, "bias")
    n = math.prod(args[1])
    y = compute(fn, *args, **kwargs)
    s = math.sqrt((n - 1) / n)
    return (y - bias) * s + bias if bias is not None else y * s


def no_mean(compute, fn, args, kwargs):
    x, w, b = args[0], arg(args, kwargs, 2, "weight"), arg(args, kwargs, 3, "bias")
    dims = tuple(range(-len(args[1]), 0))
    y = x.float() * torch.rsqrt(x.float().pow(2).mean(dims, keepdim=True) + 1e-5)
    y = y if w is None else y * w
    return (y if b is None else y + b).to(x.dtype)


def norm_no_bias(at):
    def impl(compute, fn, args, kwargs):
        args, kwargs = put(args, kwargs, at, "bias", None)
        return compute(fn, *args, **kwargs)
    return impl


def running_stats(compute, fn, args, kwargs):
    """Normalised by the running statistics, as in evaluation."""
    args, kwargs = put(args, kwargs, 5, "training", False)
    return compute(fn, *args, **kwargs)


def wrong_dim(compute, fn, args, kwargs):
    dim = arg(args, kwargs, 1, "dim", -1)
    d = dim % args[0].dim()
    args, kwargs = put(args, kwargs, 1, "dim", d - 1 if d else 1)
    return compute(fn, *args, **kwargs)


def unmasked(compute, fn, args, kwargs):
    x = args[0]
    return compute(fn, torch.where(x < -1e3, torch.zeros_like(x), x), *args[1:], **kwargs)


def temperature(compute, fn, args, kwargs):
    return compute(fn, args[0] * 1.05, *args[1:], **kwargs)


def mask_off(compute, fn, args, kwargs):
    """masked_fill that leaves one row as it was."""
    x, m = args[0], args[1]
    m = m.expand(x.shape).clone()
    m.view(-1, m.shape[-1])[0:max(1, m.numel() // m.shape[-1] // 3)] = False
    return compute(fn, x, m, *args[2:], **kwargs)


def mask_all_off(compute, fn, args, kwargs):
    return args[0] * 1


def other_reduction(compute, fn, args, kwargs):
    old = kwargs.get("reduction", "mean")
    return compute(fn, *args, **{**kwargs, "reduction": "sum" if old == "mean" else "mean"})


def wrong_n(compute, fn, args, kwargs):
    y = compute(fn, *args, **kwargs)
    n = max(2, args[0].numel() // max(1, flat(y)[0].numel()))
    return y * (n / (n - 1))


def loses_last(compute, fn, args, kwargs):
    """A reduction over all but the last elements."""
    x = args[0]
    dim = arg(args, kwargs, 2 if fn.__name__ == "norm" else 1, "dim")
    keep = torch.ones(x.shape, dtype=x.dtype)
    if dim is None:
        keep.view(-1)[-max(1, x.numel() // 8):] = 0
    else:
        d = dim[0] if isinstance(dim, (list, tuple)) else dim
        keep.narrow(d, x.shape[d] - 1, 1).zero_()
    return compute(fn, x * keep, *args[1:], **kwargs)


def index_shift(at, lowest=0):
    """An index too large by one, at the end too small."""
    def impl(compute, fn, args, kwargs):
        args = list(args)
        i = args[at]
        top = int(i.max())
        args[at] = torch.where(i < top, i + 1, i - (1 if top > lowest else 0)).clamp(min=0)
        return compute(fn, *args, **kwargs)
    return impl


def no_duplicates(compute, fn, args, kwargs):
    """Where an index comes twice, only the last one counts."""
    dim, index, src = args[1], args[2], args[3]
    if index.dim() > 1:
        return compute(fn, args[0], dim, index, src * (torch.arange(
            src.shape[dim]) % 3 > 0).to(src.dtype).view(
            [-1 if i == dim % src.dim() else 1 for i in range(src.dim())]))
    last = torch.zeros(int(index.max()) + 1, dtype=torch.long)
    last[index] = torch.arange(index.numel())
    keep = (last[index] == torch.arange(index.numel())).to(src.dtype)
    return compute(fn, args[0], dim, index, src * keep.view([-1] + [1] * (src.dim() - 1)))


def smallest(compute, fn, args, kwargs):
    return compute(fn, *args, **{**kwargs, "largest": False})


def one_norm(compute, fn, args, kwargs):
    args, kwargs = put(args, kwargs, 1, "p", 1.0)
    return compute(fn, *args, **kwargs)


def exclusive(compute, fn, args, kwargs):
    return compute(fn, *args, **kwargs) - args[0]


def times_alpha(s):
    """The factor of add_, addcmul_, addcdiv_ (a rate of learning or of forgetting) is wrong."""
    def impl(compute, fn, args, kwargs):
        key = "alpha" if fn.__name__ in ("add", "add_") else "value"
        return compute(fn, *args, **{**kwargs, key: kwargs.get(key, 1) * s})
    return impl


def power(compute, fn, args, kwargs):
    return compute(fn, args[0], args[1] * 1.01, *args[2:], **kwargs)


def other_mask(compute, fn, args, kwargs):
    """Dropout by a mask that is another one, with the right share of zeros."""
    p = arg(args, kwargs, 1, "p", 0.5)
    g = torch.Generator().manual_seed(77)
    keep = torch.rand(args[0].shape, generator=g) >= p
    return args[0] * keep / (1 - p)


def unscaled_drop(compute, fn, args, kwargs):
    return compute(fn, *args, **kwargs) * (1 - arg(args, kwargs, 1, "p", 0.5))


def k_and_v(compute, fn, args, kwargs):
    return compute(fn, args[0], args[2] + 0.5 * args[1], args[1], *args[3:], **kwargs)


def no_key_mask(compute, fn, args, kwargs):
    return compute(fn, *args, **{**kwargs, "key_padding_mask": None, "attn_mask": None})


def eps_of(e):
    names = {"layer_norm": (4, 1e-5), "batch_norm": (7, 1e-5), "group_norm": (4, 1e-5),
             "instance_norm": (7, 1e-5), "normalize": (3, 1e-12)}
    return names.get(e.op.split(".")[1])


def has(at, name):
    return lambda e: e.args[at:at + 1] and e.args[at] is not None or \
        e.kwargs.get(name) is not None


def shape(e, i=0):
    return e.args[i].shape if len(e.args) > i and isinstance(e.args[i], torch.Tensor) else ()


def is_square(e):
    return len(shape(e, 1)) >= 2 and shape(e, 1)[-1] == shape(e, 1)[-2]


def dropping(e):
    p = e.args[1] if len(e.args) > 1 else e.kwargs.get("p", 0.5)
    training = e.args[2] if len(e.args) > 2 else e.kwargs.get("training", True)
    return training and p > 0


def any_masked(e):
    x = e.args[0]
    return isinstance(x, torch.Tensor) and bool((x < -1e3).any())


def two_tensors(e):
    return len(e.args) > 1 and shape(e) and shape(e) == shape(e, 1) == e.output[0].shape


PRODUCTS = "linear matmul bmm mm __matmul__".split()
CONVS = "conv1d conv2d conv_transpose2d".split()
LOSSES = """cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss huber_loss kl_div
    binary_cross_entropy binary_cross_entropy_with_logits triplet_margin_loss ctc_loss
    cosine_embedding_loss gaussian_nll_loss margin_ranking_loss""".split()
CURVED = "exp log log1p sin cos sqrt rsqrt reciprocal pow erf softplus logsumexp".split()
ANY = None
# title, names, condition, formula
FORMULAS = [
    ("bias dropped", ["linear"] + CONVS, has(2, "bias"), with_arg(2, "bias", lambda b: None)),
    ("operands cast to bf16", PRODUCTS + CONVS + ["multi_head_attention_forward"],
     "f32", cast_operands(BF16)),
    ("operands cast to fp16", PRODUCTS + CONVS, "f32", cast_operands(F16)),
    ("inner dimension cut off", PRODUCTS + CONVS[:2], ANY, cut_k),
    ("added up in bf16", PRODUCTS, "f32", chunked),
    ("weight transposed", PRODUCTS, is_square, square_weight),
    ("operands swapped", ["matmul", "bmm", "mm"], lambda e: is_square(e) and
     shape(e) == shape(e, 1), swapped),
    ("operands swapped", ["__sub__", "__truediv__"], two_tensors, swapped),
    ("second operand lost", ["__add__", "__iadd__", "__mul__", "__truediv__", "add"],
     two_tensors, first_only),
    ("key and value mixed up", ["multi_head_attention_forward"], ANY, k_and_v),
    ("unmasked attention", ["multi_head_attention_forward"],
     lambda e: e.kwargs.get("key_padding_mask") is not None or
     e.kwargs.get("attn_mask") is not None, no_key_mask),
    ("gelu by the other formula", ["gelu"], ANY, gelu_other),
    ("gelu by a sigmoid", ["gelu"], ANY, quick_gelu),
    ("silu with a wrong factor", ["silu"], ANY, silu_beta),
    ("negative slope", ["leaky_relu"], ANY, with_arg(1, "negative_slope",
                                                     lambda s: (s or 0.01) * 1.5)),
    ("alpha of elu", ["elu"], ANY, with_arg(1, "alpha", lambda s: 0.9)),
    ("tanh by a rational formula", ["tanh"], ANY, rational_tanh),
    ("sigmoid by straight lines", ["sigmoid"], ANY, hard_sigmoid),
    ("argument rounded to bf16", CURVED, "f32", low_argument),
    ("variance by n - 1", ["layer_norm"], ANY, norm_n1),
    ("mean not taken off", ["layer_norm"], ANY, no_mean),
    ("bias dropped", ["layer_norm", "group_norm"], has(3, "bias"), norm_no_bias(3)),
    ("bias dropped", ["batch_norm", "instance_norm"], has(4, "bias"), norm_no_bias(4)),
    ("running statistics", ["batch_norm"], ANY, running_stats),
    ("eps missing", ["layer_norm", "batch_norm", "group_norm"], ANY, "eps0"),
    ("eps 1e-2", ["layer_norm", "batch_norm", "group_norm"], ANY, "eps1"),
    ("wrong dim", ["softmax", "log_softmax"], lambda e: len(shape(e)) > 1, wrong_dim),
    ("unmasked attention", ["softmax"], any_masked, unmasked),
    ("scores x1.05", ["softmax"], ANY, temperature),
    ("mask lost in some rows", ["masked_fill"], lambda e: len(shape(e)) > 1, mask_off),
    ("mask lost", ["masked_fill"], ANY, mask_all_off),
    ("sum for mean", LOSSES, ANY, other_reduction),
    ("mean over the wrong count", ["mean"] + LOSSES, ANY, wrong_n),
    ("last part not added up", ["sum", "mean", "std", "var", "logsumexp", "norm"], ANY,
     loses_last),
    ("index off by one", ["embedding", "embedding_bag"], ANY, index_shift(0)),
    ("index off by one", ["gather", "index_select"], ANY, index_shift(2)),
    ("index off by one", ["nll_loss", "cross_entropy"], lambda e: len(shape(e, 1)) == 1 and
     not e.args[1].is_floating_point(), index_shift(1)),
    ("duplicates lost", ["index_add", "scatter_add"], ANY, no_duplicates),
    ("smallest for largest", ["topk"], ANY, smallest),
    ("1-norm for 2-norm", ["norm"], ANY, one_norm),
    ("exclusive sum", ["cumsum"], ANY, exclusive),
    ("factor x10", ["add", "add_"], has(9, "alpha"), times_alpha(10)),
    ("factor x1.01", ["addcmul_", "addcdiv_"], has(9, "value"), times_alpha(1.01)),
    ("factor missing", ["add", "add_"], has(9, "alpha"), times_alpha(0)),
    ("clipping not applied", ["mul_"], ANY, first_only),
    ("exponent x1.01", ["pow", "__pow__"], lambda e: len(e.args) > 1 and
     isinstance(e.args[1], (int, float)), power),
    ("another dropout mask", ["dropout", "dropout2d"], dropping, other_mask),
    ("dropout not scaled up", ["dropout", "dropout2d"], dropping, unscaled_drop),
]


def formulas(e, f32):
    """The faults that the formula of a call can have."""
    name = e.op.split(".")[1]
    for title, names, when, impl in FORMULAS:
        if name not in names or when == "f32" and not f32:
            continue
        if callable(when) and not when(e):
            continue
        if isinstance(impl, str):
            at, default = eps_of(e)
            impl = with_arg(at, "eps", (lambda v: 0.0) if impl == "eps0" else (lambda v: 1e-2))
        yield title, impl


# --- of backward calls: fn(box, inner, given, grads) ---

def slot(change, pick):
    def fn(box, inner, given, grads):
        have = [i for i, g in enumerate(grads) if g is not None]
        if have:
            i = have[pick % len(have)]
            grads[i] = change(grads[i].float(), box)
        return grads
    return fn


def no_sum(box, inner, given, grads):
    """softmax's gradient without the term that makes its sum zero."""
    y = box.y.detach() if isinstance(box.y, torch.Tensor) else box.y[0]
    grads[0] = y * given[0] if box.name == "softmax" else given[0]
    return grads


def no_gate(box, inner, given, grads):
    grads[0] = given[0]
    return grads


def mean_lost(box, inner, given, grads):
    """A norm's gradient without the terms of mean and variance."""
    x = inner[0].detach().float()
    g = given[0].float()
    if box.name == "layer_norm":
        v = x.var(-1, unbiased=False, keepdim=True)
        w = inner[1].detach().float() if len(inner) > 1 else 1.0
        grads[0] = g * w * torch.rsqrt(v + 1e-5)
    else:
        dims = [0, *range(2, x.dim())]
        v = x.var(dims, unbiased=False, keepdim=True)
        w = box.args[3]
        w = 1.0 if w is None else w.detach().float().view([1, -1] + [1] * (x.dim() - 2))
        grads[0] = g * w * torch.rsqrt(v + 1e-5)
    return grads


def weight_rows_lost(box, inner, given, grads):
    """The gradient of a weight of half of the batch only."""
    if len(grads) > 1 and grads[1] is not None and box.name == "linear":
        g, x = given[0].float(), inner[0].detach().float()
        g, x = g.reshape(-1, g.shape[-1]), x.reshape(-1, x.shape[-1])
        h = max(1, g.shape[0] // 2)
        grads[1] = g[:h].t() @ x[:h]
    return grads


def bias_lost(box, inner, given, grads):
    if grads[-1] is not None and grads[-1].dim() == 1:
        grads[-1] = grads[-1] * (1 - 1 / max(2, given[0].numel() // given[0].shape[1]))
    return grads


def mean_for_sum(box, inner, given, grads):
    """What is summed up over the batch is divided by it, or not divided."""
    n = max(2, given[0].shape[0] if given[0].dim() else inner[0].shape[0] if inner[0].dim()
            else 2)
    have = [i for i, g in enumerate(grads) if g is not None]
    if have:
        grads[have[-1]] = grads[have[-1]] / n if given[0].dim() else grads[have[-1]] * n
    return grads


def duplicates_lost(box, inner, given, grads):
    """embedding's gradient: where an index comes twice, the last one wins."""
    i = inner[0].reshape(-1)
    new = torch.zeros(inner[1].shape)
    g = given[0].float().reshape(i.numel(), -1)
    for at, k in enumerate(i.tolist()):
        new[k] = g[at]
    grads[1] = new
    return grads


def gate_too_wide(box, inner, given, grads):
    grads[0] = torch.where(inner[0].detach() > 0, grads[0], 0.1 * given[0])
    return grads


def low_product(box, inner, given, grads):
    return [None if g is None else g.to(BF16).to(g.dtype) for g in grads]


BACKWARD = [
    ("gradient of softmax without the sum", ["softmax", "log_softmax"], no_sum),
    ("gradient passes where it must not", ["relu", "relu6", "leaky_relu", "elu"], no_gate),
    ("gradient leaks", ["relu"], gate_too_wide),
    ("gradient without the mean's term", ["layer_norm", "batch_norm"], mean_lost),
    ("half of the rows in the weight's gradient", ["linear"], weight_rows_lost),
    ("a row lost in the bias's gradient", ["linear", "conv2d"], bias_lost),
    ("mean for sum", ["linear", "conv2d", "layer_norm", "batch_norm", "embedding", "mean",
                      "cross_entropy", "mse_loss", "__add__", "__mul__"], mean_for_sum),
    ("duplicates lost in the gradient", ["embedding"], duplicates_lost),
]
GRADIENT = [row for row in TENSOR if row[0] not in ("stale", "a bit flipped in one element")]


def backward(e, f32, r):
    name = e.op.split(".")[1]
    for title, names, fn in BACKWARD:
        if name in names:
            yield title, fn
    if f32 and name in PRODUCTS + CONVS:
        yield "gradient rounded to bf16", low_product
    have = [t for t in e.output if t is not None]
    if not have:
        return
    pick = r.randrange(len(have))
    for title, least, dims, change in GRADIENT:
        if have[pick].numel() >= least and have[pick].dim() >= dims:
            yield "gradient: " + title, slot(change, pick)


# --- a call that overwrites what is not its own ---

def overwrite(at, what):
    def fn(box, xs, out):
        xs = [x for x in xs if x.is_floating_point() and x.numel() > 3]
        if xs:
            x = xs[at % len(xs)]
            flat_x = x.data.reshape(-1)
            if flat_x.data_ptr() != x.data_ptr():
                return
            k = max(1, x.numel() // 16)
            flat_x[-k:] = 0 if what == "zero" else flat_x[:k].clone() * 2
    return fn


# --- before the step ---

def parameter(r, change):
    """A change of one parameter of at least two dimensions."""
    at = r.random()

    def fn(net, batches):
        ps = [p for p in net.parameters() if p.dim() > 1]
        p = ps[int(at * len(ps))]
        with torch.no_grad():
            p.copy_(change(p.detach().float()).to(p.dtype))
    return fn


def given(change):
    """A change of the first batch's first tensor of numbers."""
    def fn(net, batches):
        b = list(batches[0])
        for i, t in enumerate(b):
            if t.is_floating_point() and t.dim() > 1:
                b[i] = change(t.float()).to(t.dtype)
                break
        batches[0] = tuple(b)
    return fn


def one_row_zero(p):
    p = p.clone()
    p[p.shape[0] // 2] = 0
    return p


WEIGHTS = [("weights: one layer x1.05", lambda p: p * 1.05),
           ("weights: one row zero", one_row_zero),
           ("weights: rows in another order", lambda p: p.roll(1, 0)),
           ("weights: one element x2", lambda p: element(lambda v: v * 2)(p, None)),
           ("weights: rounded to bf16", lambda p: p.to(BF16).float())]
INPUT = [("input: scaled", lambda x: x * 1.1), ("input: flipped", lambda x: x.flip(-1)),
         ("input: samples in another order", lambda x: x.roll(1, 0)),
         ("input: one sample zero", one_row_zero),
         ("input: normalised otherwise", lambda x: (x - 0.1) / 1.1)]
CONFIG = [("gelu by the other formula", "gelu", gelu_other),
          ("eps 1e-3", "layer_norm", with_arg(4, "eps", lambda v: 1e-3)),
          ("eps 1e-2", "batch_norm", with_arg(7, "eps", lambda v: 1e-2)),
          ("eps 1e-3", "group_norm", with_arg(4, "eps", lambda v: 1e-2)),
          ("negative slope", "leaky_relu", with_arg(1, "negative_slope", lambda v: 0.05)),
          ("unmasked attention", "masked_fill", mask_all_off),
          ("another dropout mask", "dropout", other_mask),
          ("learning rate x10", "addcdiv_", times_alpha(10)),
          ("silu with a wrong factor", "silu", silu_beta),
          ("mean over the wrong count", "mean", wrong_n)]


# --- what differs and is no fault ---

def other_of_equals(dim_at):
    """The same values, of equal ones the one that comes last."""
    def impl(compute, fn, args, kwargs):
        x = args[0]
        dim = arg(args, kwargs, dim_at, "dim", -1)
        values, index = compute(fn, x.flip(dim), *args[1:], **kwargs)
        return type_of(fn)([values, x.shape[dim] - 1 - index])
    return impl


def type_of(fn):
    return getattr(torch.return_types, fn.__name__)


def other_pooled(compute, fn, args, kwargs):
    """Of equal values in a window the last one gets the gradient."""
    return compute(fn, args[0].flip(-1, -2), *args[1:], **kwargs).flip(-1, -2)


TIES = [("topk", "topk: of two equal values the other one", other_of_equals(2)),
        ("max", "max: of two equal values the other one", other_of_equals(1)),
        ("max_pool2d", "max_pool2d: of equal values the other one", other_pooled),
        ("masked_fill", "masked with -65504", with_arg(2, "value", lambda v: -65504.0))]


def harmless(name, rows, clean, bad):
    """Is what differs first an index of equal values, or all that differs the masked values?"""
    first = rows[bad[0]]
    if name == "masked_fill":
        return all(".masked_fill." in k and k.endswith(("forward.output.0", "input.2")) or
                   ".softmax." in k and ".forward.input." in k for k in bad)
    if name == "max_pool2d":
        return ".backward." in bad[0] and ".max_pool2d." in bad[0]
    return f".{name}." in bad[0] and bad[0].endswith("output.1") and \
        not first[2].is_floating_point()


def draw(r, events, f32):
    """A fault for one of these events of a clean run, or None."""
    ops = {}
    for e in events:
        ops.setdefault((e.op, e.direction), []).append(e)
    kind = r.choices(["forward", "backward", "weights", "input", "config", "neighbour"],
                     [50, 30, 6, 4, 6, 4])[0]
    if kind == "weights":
        title, change = r.choice(WEIGHTS)
        return Fault("before", title, parameter(r, change), cat="input")
    if kind == "input":
        title, change = r.choice(INPUT)
        return Fault("before", title, given(change), cat="input")
    if kind == "config":
        have = [c for c in CONFIG if any(op.split(".")[1] == c[1] for op, _ in ops)]
        if not have:
            return None
        title, name, impl = r.choice(have)
        op = r.choice(sorted({op for op, _ in ops if op.split(".")[1] == name}))
        return Fault("impl", title + ", all (configuration)", impl, op, None, "config")
    direction = "backward" if kind == "backward" else "forward"
    have = sorted({op for op, d in ops if d == direction})
    if not have:
        return None
    e = r.choice(ops[r.choice(have), direction])
    if kind == "neighbour":
        what = r.choice(["zero", "copy"])
        return Fault("after", "overwrites its input", overwrite(r.randrange(3), what), e.op, e.call)
    if kind == "backward":
        can = list(backward(e, f32, r))
        own = [c for c in can if not c[0].startswith("gradient: ")]
        can = own if own and r.random() < 0.4 else can
        return Fault("grad", *r.choice(can), e.op, e.call) if can else None
    can = list(formulas(e, f32))
    if can and r.random() < 0.55:
        return Fault("impl", *r.choice(can), e.op, e.call)
    y = e.output[0] if e.output else None
    if not isinstance(y, torch.Tensor) or not y.is_floating_point() or not y.numel():
        return None
    can = [(t, on(c)) for t, n, d, c in TENSOR if y.numel() >= n and y.dim() >= d]
    if y.dim() > 1 and y.shape[-1] == y.shape[-2]:
        can.append(("transposed", on(transposed)))
    if f32:
        can += [("output " + t, on(c)) for t, c in ROUNDED]
    return Fault("out", *r.choice(can), e.op, e.call)
