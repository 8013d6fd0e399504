"""Calls of torch for tests/torch/sweep: OPS[name] is (group, make, options); make(g) gives a function and its arguments,
drawn by g in its shape, dtype and kind of values."""

import math, random, zlib, torch, torch.nn.functional as F

f32, bf16, f16, f64 = torch.float32, torch.bfloat16, torch.float16, torch.float64
i32, i64, i8, u8, b1 = torch.int32, torch.int64, torch.int8, torch.uint8, torch.bool
ISF = {f32, bf16, f16, f64}


class NA(Exception):
    pass


class G:
    def __init__(s, dt, S, V, seed, ref=False):
        s.dt, s.S, s.V = dt, S, V
        s.g = torch.Generator().manual_seed(seed)
        s.ref = ref
        s.leaves = []

    def rn(s, shape):
        return torch.randn(shape, generator=s.g, dtype=f64)

    def ru(s, shape):
        return torch.rand(shape, generator=s.g, dtype=f64)

    def ri(s, shape, lo, hi, dt=i64):
        return torch.randint(lo, hi, shape, generator=s.g).to(dt)

    def shape(s):
        return {
            'mid': (19, 23),
            'big': (300, 400),
            'long': (3, 16384),
            'long64k': (2, 65536),
            'nc': (19, 23),
            'cl': (2, 5, 6, 7),
            'empty': (0, 5),
            '0d': (),
            'one': (1, 1),
            'row': (1, 64),
        }[s.S]

    def vals(s, shape, dom, V=None):
        V = V or s.V
        dt = s.dt
        if dt not in ISF:
            if dt == b1:
                return s.ru(shape) > 0.5
            lo, hi = {
                'randn': (-9, 10),
                'large': (-(2**30), 2**30),
                'tiny': (-1, 2),
                'zeros': (0, 1),
                'special': (-3, 4),
                'sat': (torch.iinfo(dt).min, torch.iinfo(dt).max),
                'ties': (-2, 3),
            }[V]
            if dt in (i8, u8):
                lo, hi = max(lo, torch.iinfo(dt).min), min(hi, torch.iinfo(dt).max)
            x = s.ri(shape, lo, hi, dt)
            return x.abs() if dom in ('pos', 'unit', 'nonneg') and V != 'sat' else x
        fi = torch.finfo(dt)
        x = s.rn(shape)
        if dom == 'pos':
            x = x.abs() + 1e-3
        if dom == 'nonneg':
            x = x.abs()
        if dom == 'unit':
            x = torch.tanh(x)
        if dom == 'prob':
            x = s.ru(shape) * 0.998 + 0.001
        if dom == 'gt1':
            x = x.abs() + 1.001
        if V == 'large':
            if dom in ('any', 'pos', 'nonneg', 'gt1'):
                x = x * {f32: 1e15, bf16: 1e15, f16: 1000.0, f64: 1e120}[dt]
        elif V == 'mod30':
            if dom in ('any', 'pos', 'nonneg'):
                x = x * 30
        elif V == 'tiny':
            if dom != 'gt1':
                x = x * fi.tiny * 0.3 * (2.0 ** s.ri(shape, 0, 6).double())
            if dom == 'prob':
                x = x.clamp(0, 1)
        elif V == 'zeros':
            x = x * 0 if dom != 'gt1' else x * 0 + 1
        elif V == 'ties':
            x = torch.round(x * 2) / 2 if dom not in ('prob', 'unit') else torch.round(x * 4) / 4
            if dom == 'gt1':
                x = x.clamp(min=1)
        elif V == 'special':
            n = max(x.numel(), 1)
            f = x.reshape(-1).clone()
            sp = [
                float('nan'),
                float('inf'),
                -float('inf'),
                0.0,
                -0.0,
                fi.max,
                -fi.max,
                fi.tiny,
                fi.smallest_normal / 4,
            ]
            for k, v in enumerate(sp):
                if f.numel() > 0:
                    f[(k * 37 + 5) % f.numel()] = v
            x = f.reshape(x.shape)
        elif V == 'inf':  # infinities alone
            f = x.reshape(-1).clone()
            for k, v in enumerate([float('inf'), -float('inf')]):
                if f.numel() > 0:
                    f[(k * 37 + 5) % f.numel()] = v
            x = f.reshape(x.shape)
        elif V == 'sat':
            if dom in ('any', 'pos', 'nonneg'):
                x = torch.sign(x) * fi.max * (0.5 + 0.5 * s.ru(shape)) if x.numel() else x
            if dom in ('pos', 'nonneg'):
                x = x.abs()
        return x.clamp(-fi.max, fi.max).where(torch.isfinite(x), x) if x.numel() else x

    def t(s, shape=None, dom='any', grad=True, V=None, dt=None):
        shape = s.shape() if shape is None else tuple(shape)
        d = dt or s.dt
        x = s.vals(shape, dom, V).to(d)  # rounded to dtype first, both for real and reference
        if s.ref and d in ISF:
            x = x.to(f64)
        if s.S == 'nc' and x.dim() >= 2:
            x = x.transpose(-1, -2).contiguous().transpose(-1, -2)
        if s.S == 'cl' and x.dim() == 4:
            x = x.contiguous(memory_format=torch.channels_last)
        if x.is_floating_point() and grad:
            x.requires_grad_(True)
            s.leaves.append(x)
        return x

    def i(s, shape, hi, lo=0):
        return s.ri(shape, lo, hi)

    def m(s, shape, p=0.5):
        return s.ru(shape) < p


OPS = {}


def op(name, group, fn, **kw):
    OPS[name] = (group, fn, kw)


T = torch
# --- unary
U = '''abs neg square sqrt:nonneg rsqrt:pos reciprocal:pos log:pos log2:pos log10:pos exp:mod expm1:mod exp2:mod log1p:nonneg sin:mod cos:mod tan:mod asin:unit acos:unit
atan sinh:mod cosh:mod asinh acosh:gt1 atanh:unit erf erfc sigmoid tanh floor ceil trunc frac round sign isnan isinf isfinite logical_not positive signbit isposinf isneginf
nan_to_num deg2rad rad2deg lgamma:pos logit:prob sinc'''.split()
for u in U:
    n, _, d = u.partition(':')
    op(
        n,
        'unary',
        (lambda n, d: lambda g: (lambda x: getattr(T, n)(x), [g.t(dom='any' if d in ('', 'mod') else d)]))(n, d),
        mod=d == 'mod',
    )
for n, f in dict(
    relu=F.relu,
    relu6=F.relu6,
    hardtanh=F.hardtanh,
    leaky_relu=lambda x: F.leaky_relu(x, 0.1),
    elu=F.elu,
    celu=lambda x: F.celu(x, 0.7),
    selu=F.selu,
    silu=F.silu,
    gelu=F.gelu,
    gelu_tanh=lambda x: F.gelu(x, approximate='tanh'),
    mish=F.mish,
    hardswish=F.hardswish,
    hardsigmoid=F.hardsigmoid,
    softsign=F.softsign,
    softplus=F.softplus,
    logsigmoid=F.logsigmoid,
    threshold=lambda x: F.threshold(x, 0.2, -1.0),
    hardshrink=F.hardshrink,
    softshrink=F.softshrink,
    tanhshrink=F.tanhshrink,
    special_erf=lambda x: T.special.erf(x),
    special_expit=lambda x: T.special.expit(x),
    pow2=lambda x: x**2,
    pow3=lambda x: x**3,
    pow_half=lambda x: T.pow(x.abs(), 0.5),
    pow_m1=lambda x: x**-1,
    pow_03=lambda x: T.pow(x.abs(), 0.3),
    rpow=lambda x: 2**x,
    clamp=lambda x: x.clamp(-0.5, 0.7),
    clamp_min=lambda x: x.clamp_min(0.1),
    clamp_max=lambda x: x.clamp_max(0.1),
    add_s=lambda x: x + 0.1,
    sub_s=lambda x: x - 0.1,
    mul_s=lambda x: x * 0.1,
    div_s=lambda x: x / 3.0,
    rsub_s=lambda x: 1 - x,
    rdiv_s=lambda x: 1 / x,
    fmod_s=lambda x: T.fmod(x, 0.7),
    rem_s=lambda x: T.remainder(x, 0.7),
    fdiv_s=lambda x: x // 0.7,
    round2=lambda x: T.round(x, decimals=2),
    nan_to_num2=lambda x: T.nan_to_num(x, nan=1.0, posinf=2.0, neginf=-3.0),
    clone=lambda x: x.clone(),
    relu_=lambda x: (x * 1).relu_(),
    mul_=lambda x: (x * 1).mul_(0.3),
    add_=lambda x: (x * 1).add_(0.3),
    zeros_like=T.zeros_like,
    ones_like=T.ones_like,
    full_like=lambda x: T.full_like(x, 3.3),
    to_f32=lambda x: x.float(),
    to_bf16=lambda x: x.bfloat16(),
    to_half=lambda x: x.half(),
    to_f64=lambda x: x.double(),
    to_i32=lambda x: x.int(),
    to_i64=lambda x: x.long(),
    to_bool=lambda x: x.bool(),
    to_u8=lambda x: x.to(u8),
    f8=lambda x: x.to(T.float8_e4m3fn),
    f8e5=lambda x: x.to(T.float8_e5m2),
    bitwise_not=lambda x: T.bitwise_not(x),
).items():
    op(n, 'unary', (lambda f: lambda g: (f, [g.t()]))(f), mod=n in ('rpow', 'silu', 'gelu', 'mish', 'softplus'))
# --- binary
for n, f in dict(
    add=T.add,
    sub=T.sub,
    mul=T.mul,
    div=T.div,
    maximum=T.maximum,
    minimum=T.minimum,
    fmod=T.fmod,
    remainder=T.remainder,
    floor_divide=T.floor_divide,
    atan2=T.atan2,
    hypot=T.hypot,
    eq=T.eq,
    ne=T.ne,
    lt=T.lt,
    le=T.le,
    gt=T.gt,
    ge=T.ge,
    logical_and=T.logical_and,
    logical_or=T.logical_or,
    logical_xor=T.logical_xor,
    bitwise_and=T.bitwise_and,
    bitwise_or=T.bitwise_or,
    bitwise_xor=T.bitwise_xor,
    fmax=T.fmax,
    fmin=T.fmin,
    logaddexp=T.logaddexp,
    logaddexp2=T.logaddexp2,
    copysign=T.copysign,
    heaviside=T.heaviside,
    add_alpha=lambda a, b: T.add(a, b, alpha=0.3),
    rsub=lambda a, b: T.rsub(a, b),
    lerp=lambda a, b: T.lerp(a, b, 0.3),
    gcd=T.gcd,
    lcm=T.lcm,
    xlogy=lambda a, b: T.xlogy(a, b.abs()),
    float_power=lambda a, b: T.float_power(a.abs(), b),
    div_floor=lambda a, b: T.div(a, b, rounding_mode='floor'),
    div_trunc=lambda a, b: T.div(a, b, rounding_mode='trunc'),
    radd=lambda a, b: a.__radd__(b),
    true_div=lambda a, b: a / b,
    floordiv=lambda a, b: a // b,
    mod=lambda a, b: a % b,
).items():
    op(n, 'binary', (lambda f: lambda g: (f, [g.t(), g.t()]))(f))
    op(n + '.bc', 'binary_bc', (lambda f: lambda g: (f, [g.t((7, 1, 23)), g.t((19, 23))]))(f))
op('pow', 'binary', lambda g: (T.pow, [g.t(dom='pos'), g.t()]), mod=True)
op('ldexp', 'binary', lambda g: (T.ldexp, [g.t(), g.i(g.shape(), 5, -4)]))
op('lshift', 'binary', lambda g: (T.bitwise_left_shift, [g.t(), g.i(g.shape(), 5).to(g.dt)]))
op('rshift', 'binary', lambda g: (T.bitwise_right_shift, [g.t(), g.i(g.shape(), 5).to(g.dt)]))
op('addcmul', 'ternary', lambda g: (lambda a, b, c: T.addcmul(a, b, c, value=0.7), [g.t(), g.t(), g.t()]))
op('addcdiv', 'ternary', lambda g: (lambda a, b, c: T.addcdiv(a, b, c, value=0.7), [g.t(), g.t(), g.t(dom='pos')]))
op('where', 'ternary', lambda g: (T.where, [g.m(g.shape()), g.t(), g.t()]))
op('lerp_t', 'ternary', lambda g: (T.lerp, [g.t(), g.t(), g.t(dom='prob')]))
op('clamp_t', 'ternary', lambda g: (lambda a, b, c: T.clamp(a, b, c), [g.t(), g.t(), g.t()]))
op(
    'masked_fill',
    'ternary',
    lambda g: (lambda m, a: a.masked_fill(m, -1e4 if a.is_floating_point() else 3), [g.m(g.shape()), g.t()]),
)
op('masked_fill_inf', 'ternary', lambda g: (lambda m, a: a.masked_fill(m, float('-inf')), [g.m(g.shape()), g.t()]))
op('prelu', 'ternary', lambda g: (F.prelu, [g.t((4, 5, 6)), g.t((5,))]))


# --- reductions
def R(n, f, **k):
    op(n, 'reduce', (lambda f: lambda g: (f, [g.t()]))(f), **k)


for n in 'sum mean prod amax amin argmax argmin all any logsumexp var std cumsum cumprod count_nonzero nansum'.split():
    if n not in ('all', 'any', 'count_nonzero', 'logsumexp'):
        if n not in ('cumsum', 'cumprod'):
            R(n, lambda x, n=n: getattr(T, n)(x))
    R(n + '.d', lambda x, n=n: getattr(T, n)(x, -1))
    R(n + '.d0', lambda x, n=n: getattr(T, n)(x, 0))
    if n in ('sum', 'mean', 'amax', 'amin', 'var', 'std', 'logsumexp'):
        R(n + '.kd', lambda x, n=n: getattr(T, n)(x, dim=-1, keepdim=True))
R('all', lambda x: T.all(x))
R('any', lambda x: T.any(x))
R('count_nonzero', lambda x: T.count_nonzero(x))
R('max', lambda x: T.max(x))
R('min', lambda x: T.min(x))
R('max.d', lambda x: T.max(x, -1))
R('min.d', lambda x: T.min(x, -1))
R('max.d0', lambda x: T.max(x, 0))
R('norm', lambda x: T.norm(x))
R('norm.d', lambda x: T.norm(x, dim=-1))
R('norm1', lambda x: T.linalg.vector_norm(x, 1, dim=-1))
R('norminf', lambda x: T.linalg.vector_norm(x, float('inf'), dim=-1))
R('norm3', lambda x: T.linalg.vector_norm(x, 3, dim=-1))
R('norm0', lambda x: T.linalg.vector_norm(x, 0, dim=-1))
R('var0', lambda x: T.var(x, dim=-1, correction=0))
R('std0', lambda x: T.std(x, dim=-1, unbiased=False))
R('var_mean', lambda x: T.var_mean(x, dim=-1))
R('std_mean', lambda x: T.std_mean(x, dim=-1))
R('aminmax', lambda x: T.aminmax(x, dim=-1))
R('var_off', lambda x: T.var(x + 100, dim=-1))
R('softmax', lambda x: F.softmax(x, -1))
R('softmax0', lambda x: F.softmax(x, 0))
R('log_softmax', lambda x: F.log_softmax(x, -1))
R('softmin', lambda x: F.softmin(x, -1))
R('logcumsumexp', lambda x: T.logcumsumexp(x, -1))
R('softmax_f32', lambda x: F.softmax(x, -1, dtype=f32))
R('sum_f32', lambda x: T.sum(x, -1, dtype=f32))
R('mean_f32', lambda x: T.mean(x, -1, dtype=f32))
R('cumsum_f32', lambda x: T.cumsum(x, -1, dtype=f32))
R('cummax', lambda x: T.cummax(x, -1))
R('cummin', lambda x: T.cummin(x, -1))
R('sort', lambda x: T.sort(x, -1))
R('sort_desc', lambda x: T.sort(x, -1, descending=True))
R('argsort', lambda x: T.argsort(x, -1))
R('topk', lambda x: T.topk(x, 3))
R('topk_small', lambda x: T.topk(x, 3, largest=False))
R('kthvalue', lambda x: T.kthvalue(x, 2))
R('median', lambda x: T.median(x))
R('median.d', lambda x: T.median(x, -1))
R('msort', lambda x: T.msort(x))
R('unique', lambda x: T.unique(x))
R('unique_rc', lambda x: T.unique(x, return_inverse=True, return_counts=True))
R('nonzero', lambda x: T.nonzero(x))
R('argwhere', lambda x: T.argwhere(x))
R('diff', lambda x: T.diff(x))
R('normalize', lambda x: F.normalize(x, dim=-1))
R('glu', lambda x: F.glu(x[..., : x.shape[-1] // 2 * 2], -1))
R('dist', lambda x: T.dist(x, x.detach() * 0.5))


# --- norms
def N(n, f):
    op(n, 'norm', f)


N(
    'layer_norm',
    lambda g: (
        lambda x, w, b: F.layer_norm(x, (x.shape[-1],), w, b, 1e-5),
        [g.t(), g.t((g.shape()[-1],), V='randn'), g.t((g.shape()[-1],), V='randn')],
    ),
)
N('layer_norm_nw', lambda g: (lambda x: F.layer_norm(x, (x.shape[-1],)), [g.t()]))
N(
    'layer_norm_off',
    lambda g: (
        lambda x: F.layer_norm(x, (x.shape[-1],)),
        [(g.t(grad=False) + 1000).detach().to(f64 if g.ref else g.dt).requires_grad_(True)],
    ),
)
N(
    'rms_norm',
    lambda g: (lambda x, w: F.rms_norm(x, (x.shape[-1],), w, 1e-6), [g.t(), g.t((g.shape()[-1],), V='randn')]),
)
N(
    'rms_norm_noeps',
    lambda g: (lambda x, w: F.rms_norm(x, (x.shape[-1],), w), [g.t(), g.t((g.shape()[-1],), V='randn')]),
)


def nchw(g):
    return {
        'mid': (4, 6, 5, 7),
        'cl': (4, 6, 5, 7),
        'nc': (4, 6, 5, 7),
        'long': (2, 6, 64, 64),
        'big': (8, 32, 16, 16),
        'empty': (0, 6, 5, 7),
    }.get(g.S) or (_ for _ in ()).throw(NA())


N(
    'batch_norm',
    lambda g: (
        lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
        [g.t(nchw(g)), g.t((nchw(g)[1],), V='randn'), g.t((nchw(g)[1],), V='randn')],
    ),
)
N(
    'batch_norm_run',
    lambda g: (
        lambda x, rm, rv, w, b: F.batch_norm(x, rm, rv, w, b, True, 0.1),
        [
            g.t(nchw(g)),
            g.t((nchw(g)[1],), V='randn', grad=False),
            g.t((nchw(g)[1],), 'pos', V='randn', grad=False),
            g.t((nchw(g)[1],), V='randn'),
            g.t((nchw(g)[1],), V='randn'),
        ],
    ),
)
N(
    'batch_norm_eval',
    lambda g: (
        lambda x, rm, rv, w, b: F.batch_norm(x, rm, rv, w, b, False),
        [
            g.t(nchw(g)),
            g.t((nchw(g)[1],), V='randn', grad=False),
            g.t((nchw(g)[1],), 'pos', V='randn', grad=False),
            g.t((nchw(g)[1],), V='randn'),
            g.t((nchw(g)[1],), V='randn'),
        ],
    ),
)
N(
    'group_norm',
    lambda g: (
        lambda x, w, b: F.group_norm(x, 3, w, b),
        [g.t(nchw(g)), g.t((nchw(g)[1],), V='randn'), g.t((nchw(g)[1],), V='randn')],
    ),
)
N(
    'instance_norm',
    lambda g: (
        lambda x, w, b: F.instance_norm(x, None, None, w, b),
        [g.t(nchw(g)), g.t((nchw(g)[1],), V='randn'), g.t((nchw(g)[1],), V='randn')],
    ),
)
N('lrn', lambda g: (lambda x: F.local_response_norm(x, 3), [g.t(nchw(g))]))
N('cdist', lambda g: (lambda a, b: T.cdist(a, b), [g.t((7, 9)), g.t((5, 9))]))
N('cdist_mm', lambda g: (lambda a, b: T.cdist(a, b), [g.t((30, 9)), g.t((28, 9))]))
N('pairwise', lambda g: (F.pairwise_distance, [g.t((7, 9)), g.t((7, 9))]))
N('cosine_similarity', lambda g: (F.cosine_similarity, [g.t((7, 9)), g.t((7, 9))]))


# --- products
def K(g):
    return {'mid': 37, 'long': 16384, 'long64k': 65536, 'big': 512, 'nc': 37, 'row': 64, 'one': 1, 'empty': 0}.get(
        g.S
    ) or (_ for _ in ()).throw(NA())


def P(n, f):
    op(n, 'product', f)


P('linear', lambda g: (F.linear, [g.t((6, K(g))), g.t((5, K(g))), g.t((5,))]))
P('linear3', lambda g: (F.linear, [g.t((2, 3, K(g))), g.t((5, K(g)))]))
P('matmul', lambda g: (T.matmul, [g.t((6, K(g))), g.t((K(g), 5))]))
P('at', lambda g: (lambda a, b: a @ b, [g.t((6, K(g))), g.t((K(g), 5))]))
P('matmul_bc', lambda g: (T.matmul, [g.t((2, 3, 6, K(g))), g.t((K(g), 5))]))
P('matmul_T', lambda g: (lambda a, b: T.matmul(a, b.t()), [g.t((6, K(g))), g.t((5, K(g)))]))
P('mm', lambda g: (T.mm, [g.t((6, K(g))), g.t((K(g), 5))]))
P('bmm', lambda g: (T.bmm, [g.t((3, 6, K(g))), g.t((3, K(g), 5))]))
P('mv', lambda g: (T.mv, [g.t((6, K(g))), g.t((K(g),))]))
P('dot', lambda g: (T.dot, [g.t((K(g),)), g.t((K(g),))]))
P('vdot', lambda g: (T.vdot, [g.t((K(g),)), g.t((K(g),))]))
P('inner', lambda g: (T.inner, [g.t((6, K(g))), g.t((5, K(g)))]))
P(
    'addmm',
    lambda g: (lambda c, a, b: T.addmm(c, a, b, beta=0.5, alpha=2), [g.t((6, 5)), g.t((6, K(g))), g.t((K(g), 5))]),
)
P('baddbmm', lambda g: (T.baddbmm, [g.t((3, 6, 5)), g.t((3, 6, K(g))), g.t((3, K(g), 5))]))
P('addmv', lambda g: (T.addmv, [g.t((6,)), g.t((6, K(g))), g.t((K(g),))]))
P('outer', lambda g: (T.outer, [g.t((K(g),)), g.t((5,))]))
P('addr', lambda g: (T.addr, [g.t((6, 5)), g.t((6,)), g.t((5,))]))
P('einsum', lambda g: (lambda a, b: T.einsum('bik,bkj->bij', a, b), [g.t((3, 6, K(g))), g.t((3, K(g), 5))]))
P('einsum3', lambda g: (lambda a, b, c: T.einsum('ik,kj,k->ij', a, b, c), [g.t((6, 37)), g.t((37, 5)), g.t((37,))]))
P('bilinear', lambda g: (F.bilinear, [g.t((6, 7)), g.t((6, 8)), g.t((4, 7, 8)), g.t((4,))]))
P('linear_sq', lambda g: (F.linear, [g.t((64, 256)), g.t((256, 256)), g.t((256,))]))
P('linear_bigrow', lambda g: (F.linear, [g.t((2048, 96)), g.t((80, 96)), g.t((80,))]))
P('chain', lambda g: (lambda a, b, c: T.linalg.multi_dot([a, b, c]), [g.t((6, 7)), g.t((7, 8)), g.t((8, 5))]))
P('cross', lambda g: (lambda a, b: T.linalg.cross(a, b), [g.t((6, 3)), g.t((6, 3))]))


# conv
def C(n, f):
    op(n, 'conv', f)


def cs(g):
    return {
        'mid': (2, 6, 9, 10),
        'cl': (2, 6, 9, 10),
        'nc': (2, 6, 9, 10),
        'long': (2, 64, 12, 12),
        'big': (4, 32, 20, 20),
    }.get(g.S) or (_ for _ in ()).throw(NA())


C('conv2d', lambda g: (lambda x, w, b: F.conv2d(x, w, b, padding=1), [g.t(cs(g)), g.t((8, cs(g)[1], 3, 3)), g.t((8,))]))
C('conv2d_s2', lambda g: (lambda x, w: F.conv2d(x, w, stride=2, dilation=2), [g.t(cs(g)), g.t((8, cs(g)[1], 3, 3))]))
C(
    'conv2d_dw',
    lambda g: (
        lambda x, w, b: F.conv2d(x, w, b, padding=1, groups=x.shape[1]),
        [g.t(cs(g)), g.t((cs(g)[1], 1, 3, 3)), g.t((cs(g)[1],))],
    ),
)
C('conv2d_1x1', lambda g: (lambda x, w, b: F.conv2d(x, w, b), [g.t(cs(g)), g.t((8, cs(g)[1], 1, 1)), g.t((8,))]))
C(
    'conv1d',
    lambda g: (lambda x, w, b: F.conv1d(x, w, b, padding='same'), [g.t(cs(g)[:3]), g.t((8, cs(g)[1], 3)), g.t((8,))]),
)
C('conv3d', lambda g: (lambda x, w, b: F.conv3d(x, w, b), [g.t((2, 3, 5, 6, 7)), g.t((4, 3, 2, 3, 2)), g.t((4,))]))
C(
    'convT2d',
    lambda g: (
        lambda x, w, b: F.conv_transpose2d(x, w, b, stride=2, padding=1, output_padding=1),
        [g.t(cs(g)), g.t((cs(g)[1], 4, 3, 3)), g.t((4,))],
    ),
)
C(
    'convT1d',
    lambda g: (
        lambda x, w, b: F.conv_transpose1d(x, w, b, stride=2),
        [g.t(cs(g)[:3]), g.t((cs(g)[1], 4, 3)), g.t((4,))],
    ),
)


# pool
def PO(n, f):
    op(n, 'pool', (lambda f: lambda g: (f, [g.t(cs(g))]))(f))


PO('avg_pool2d', lambda x: F.avg_pool2d(x, 3, 2, 1))
PO('avg_pool2d_ncip', lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False))
PO('max_pool2d', lambda x: F.max_pool2d(x, 3, 2, 1))
PO('max_pool2d_i', lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True))
PO('adaptive_avg_pool2d', lambda x: F.adaptive_avg_pool2d(x, (3, 4)))
PO('adaptive_avg1', lambda x: F.adaptive_avg_pool2d(x, 1))
PO('adaptive_max_pool2d', lambda x: F.adaptive_max_pool2d(x, (3, 4)))
PO('avg_pool1d', lambda x: F.avg_pool1d(x.flatten(2), 3))
PO('max_pool1d', lambda x: F.max_pool1d(x.flatten(2), 3))
PO('avg_pool3d', lambda x: F.avg_pool3d(x[None], 2))
PO('max_pool3d', lambda x: F.max_pool3d(x[None], 2))
PO('adaptive_avg_pool1d', lambda x: F.adaptive_avg_pool1d(x.flatten(2), 7))
PO('adaptive_max_pool1d', lambda x: F.adaptive_max_pool1d(x.flatten(2), 7))
PO('lp_pool2d', lambda x: F.lp_pool2d(x, 2, 3))
for m in ('nearest', 'bilinear', 'bicubic', 'area', 'nearest-exact'):
    PO('interp_' + m, lambda x, m=m: F.interpolate(x, scale_factor=2, mode=m))
    PO('interp_down_' + m, lambda x, m=m: F.interpolate(x, size=(4, 5), mode=m))
PO('interp_bilinear_ac', lambda x: F.interpolate(x, size=(13, 17), mode='bilinear', align_corners=True))
PO('interp_bilinear_aa', lambda x: F.interpolate(x, size=(4, 5), mode='bilinear', antialias=True))
PO('interp_odd', lambda x: F.interpolate(x, scale_factor=1.7, mode='bilinear'))
PO(
    'grid_sample',
    lambda x: F.grid_sample(
        x, T.linspace(-1, 1, x.shape[0] * 3 * 4 * 2, dtype=x.dtype).reshape(x.shape[0], 3, 4, 2), align_corners=False
    ),
)
PO('pixel_shuffle', lambda x: F.pixel_shuffle(x[:, :4], 2))
PO('pixel_unshuffle', lambda x: F.pixel_unshuffle(x[:, :, :8, :8], 2))
PO('unfold', lambda x: F.unfold(x, 3, padding=1))
PO('fold', lambda x: F.fold(F.unfold(x, 3, padding=1), x.shape[-2:], 3, padding=1))
PO('channel_shuffle', lambda x: F.channel_shuffle(x, 2))
PO('pad_c', lambda x: F.pad(x, (1, 2, 0, 1), value=0.5))
PO('pad_reflect', lambda x: F.pad(x, (1, 2, 0, 1), mode='reflect'))
PO('pad_rep', lambda x: F.pad(x, (1, 2, 0, 1), mode='replicate'))
PO('pad_circ', lambda x: F.pad(x, (1, 2, 0, 1), mode='circular'))


# attention
def A(n, f):
    op(n, 'attention', f)


def q(g, L=None):
    return {
        'mid': (2, 3, 11, 16),
        'nc': (2, 3, 11, 16),
        'long': (1, 2, 1024, 32),
        'big': (2, 4, 96, 64),
        'row': (1, 2, 1, 16),
    }.get(g.S) or (_ for _ in ()).throw(NA())


def qs(g):
    s = q(g)
    return [g.t(s), g.t(s), g.t(s)]


A('sdpa', lambda g: (F.scaled_dot_product_attention, qs(g)))
A('sdpa_causal', lambda g: (lambda a, b, c: F.scaled_dot_product_attention(a, b, c, is_causal=True), qs(g)))
A(
    'sdpa_bool',
    lambda g: (
        lambda m, a, b, c: F.scaled_dot_product_attention(a, b, c, attn_mask=m),
        [g.m((q(g)[2], q(g)[2]), 0.7)] + qs(g),
    ),
)
A(
    'sdpa_masked_row',
    lambda g: (
        lambda m, a, b, c: F.scaled_dot_product_attention(a, b, c, attn_mask=m),
        [(lambda m: m.index_fill(0, T.tensor([0]), False))(g.m((q(g)[2], q(g)[2]), 0.7))] + qs(g),
    ),
)
A(
    'sdpa_fmask',
    lambda g: (
        lambda m, a, b, c: F.scaled_dot_product_attention(a, b, c, attn_mask=m),
        [g.t((q(g)[2], q(g)[2]), grad=False)] + qs(g),
    ),
)
A('sdpa_scale', lambda g: (lambda a, b, c: F.scaled_dot_product_attention(a, b, c, scale=0.5), qs(g)))
A(
    'sdpa_gqa',
    lambda g: (
        lambda a, b, c: F.scaled_dot_product_attention(a, b, c, enable_gqa=True),
        [g.t((2, 4, 11, 16)), g.t((2, 2, 11, 16)), g.t((2, 2, 11, 16))],
    ),
)
A(
    'sdpa_cross',
    lambda g: (
        lambda a, b, c: F.scaled_dot_product_attention(a, b, c),
        [g.t((2, 4, 5, 16)), g.t((2, 4, 11, 16)), g.t((2, 4, 11, 24))],
    ),
)
A(
    'mha',
    lambda g: (
        lambda x, w, b, ow, ob: F.multi_head_attention_forward(
            x, x, x, 16, 4, w, b, None, None, False, 0.0, ow, ob, training=True, need_weights=False
        )[0],
        [g.t((7, 2, 16)), g.t((48, 16)), g.t((48,)), g.t((16, 16)), g.t((16,))],
    ),
)
A(
    'mha_w',
    lambda g: (
        lambda x, w, b, ow, ob: F.multi_head_attention_forward(
            x, x, x, 16, 4, w, b, None, None, False, 0.0, ow, ob, training=True, need_weights=True
        ),
        [g.t((7, 2, 16)), g.t((48, 16)), g.t((48,)), g.t((16, 16)), g.t((16,))],
    ),
)


# recurrent
def rec(kind):
    def f(g):
        H, I = 8, 6
        gates = {'lstm': 4, 'gru': 3, 'rnn_tanh': 1, 'rnn_relu': 1}[kind]
        L = {'mid': 7, 'long': 200, 'big': 40, 'nc': 7}.get(g.S)
        if not L:
            raise NA()
        x = g.t((L, 3, I))
        ws = [g.t((gates * H, I)), g.t((gates * H, H)), g.t((gates * H,)), g.t((gates * H,))]
        h = g.t((1, 3, H))
        if kind == 'lstm':
            c = g.t((1, 3, H))
            return (lambda x, h, c, *w: T.lstm(x, (h, c), list(w), True, 1, 0.0, True, False, False), [x, h, c] + ws)
        return (lambda x, h, *w: getattr(T, kind)(x, h, list(w), True, 1, 0.0, True, False, False), [x, h] + ws)

    return f


for k in ('lstm', 'gru', 'rnn_tanh', 'rnn_relu'):
    op(k, 'recurrent', rec(k))
op(
    'lstm_cell',
    'recurrent',
    lambda g: (
        lambda x, h, c, *w: T.lstm_cell(x, (h, c), *w),
        [g.t((3, 6)), g.t((3, 8)), g.t((3, 8)), g.t((32, 6)), g.t((32, 8)), g.t((32,)), g.t((32,))],
    ),
)
op(
    'gru_cell',
    'recurrent',
    lambda g: (T.gru_cell, [g.t((3, 6)), g.t((3, 8)), g.t((24, 6)), g.t((24, 8)), g.t((24,)), g.t((24,))]),
)
op(
    'rnn_tanh_cell',
    'recurrent',
    lambda g: (T.rnn_tanh_cell, [g.t((3, 6)), g.t((3, 8)), g.t((8, 6)), g.t((8, 8)), g.t((8,)), g.t((8,))]),
)
op(
    'rnn_relu_cell',
    'recurrent',
    lambda g: (T.rnn_relu_cell, [g.t((3, 6)), g.t((3, 8)), g.t((8, 6)), g.t((8, 8)), g.t((8,)), g.t((8,))]),
)


# losses
def L(n, f):
    op(n, 'loss', f)


def ls(g):
    return {'mid': (19, 23), 'long': (64, 4096), 'big': (300, 400), 'nc': (19, 23), 'row': (1, 64)}.get(g.S) or (
        _ for _ in ()
    ).throw(NA())


for red in ('mean', 'sum', 'none'):
    r = '' if red == 'mean' else '.' + red
    L(
        'cross_entropy' + r,
        lambda g, red=red: (
            lambda y, x: F.cross_entropy(x, y, reduction=red),
            [g.i((ls(g)[0],), ls(g)[1]), g.t(ls(g))],
        ),
    )
    L(
        'cross_entropy_ign' + r,
        lambda g, red=red: (
            lambda y, x: F.cross_entropy(x, y, reduction=red),
            [(lambda y: y.masked_fill(g.m(y.shape, 0.3), -100))(g.i((ls(g)[0],), ls(g)[1])), g.t(ls(g))],
        ),
    )
    L(
        'cross_entropy_ls' + r,
        lambda g, red=red: (
            lambda y, x: F.cross_entropy(x, y, reduction=red, label_smoothing=0.1),
            [g.i((ls(g)[0],), ls(g)[1]), g.t(ls(g))],
        ),
    )
    L(
        'cross_entropy_w' + r,
        lambda g, red=red: (
            lambda y, x, w: F.cross_entropy(x, y, w, reduction=red),
            [g.i((ls(g)[0],), ls(g)[1]), g.t(ls(g)), g.t((ls(g)[1],), 'pos', V='randn', grad=False)],
        ),
    )
    L(
        'cross_entropy_p' + r,
        lambda g, red=red: (
            lambda x, y: F.cross_entropy(x, y, reduction=red),
            [g.t(ls(g)), F.softmax(g.t(ls(g), V='randn', grad=False), -1)],
        ),
    )
    L(
        'nll_loss' + r,
        lambda g, red=red: (lambda y, x: F.nll_loss(x, y, reduction=red), [g.i((ls(g)[0],), ls(g)[1]), g.t(ls(g))]),
    )
    for nm, fn in dict(
        mse_loss=F.mse_loss, l1_loss=F.l1_loss, smooth_l1_loss=F.smooth_l1_loss, huber_loss=F.huber_loss
    ).items():
        L(nm + r, lambda g, red=red, fn=fn: (lambda x, y: fn(x, y, reduction=red), [g.t(ls(g)), g.t(ls(g))]))
    L(
        'bce' + r,
        lambda g, red=red: (
            lambda x, y: F.binary_cross_entropy(x, y, reduction=red),
            [g.t(ls(g), 'prob'), g.t(ls(g), 'prob', grad=False)],
        ),
    )
    L(
        'bce_logits' + r,
        lambda g, red=red: (
            lambda x, y: F.binary_cross_entropy_with_logits(x, y, reduction=red),
            [g.t(ls(g)), g.t(ls(g), 'prob', grad=False, V='randn')],
        ),
    )
    L(
        'soft_margin' + r,
        lambda g, red=red: (
            lambda x, y: F.soft_margin_loss(x, y, reduction=red),
            [g.t(ls(g)), (g.m(ls(g)).to(f64 if g.ref else g.dt) * 2 - 1)],
        ),
    )
    L(
        'poisson' + r,
        lambda g, red=red: (
            lambda x, y: F.poisson_nll_loss(x, y, reduction=red),
            [g.t(ls(g)), g.t(ls(g), 'pos', grad=False, V='randn')],
        ),
    )
L(
    'kl_div',
    lambda g: (
        lambda x, y: F.kl_div(x, y, reduction='batchmean'),
        [g.t(ls(g)), F.softmax(g.t(ls(g), V='randn', grad=False), -1)],
    ),
)
L(
    'kl_div_log',
    lambda g: (
        lambda x, y: F.kl_div(x, y, reduction='batchmean', log_target=True),
        [F.log_softmax(g.t(ls(g)), -1), F.log_softmax(g.t(ls(g), V='randn', grad=False), -1)],
    ),
)
L(
    'gaussian_nll',
    lambda g: (
        lambda x, y, v: F.gaussian_nll_loss(x, y, v),
        [g.t(ls(g)), g.t(ls(g), grad=False), g.t(ls(g), 'pos', V='randn')],
    ),
)
L(
    'margin_ranking',
    lambda g: (
        lambda x, y, t: F.margin_ranking_loss(x, y, t, 0.3),
        [g.t((19,)), g.t((19,)), (g.m((19,)).to(f64 if g.ref else g.dt) * 2 - 1)],
    ),
)
L(
    'hinge_embedding',
    lambda g: (
        lambda x, t: F.hinge_embedding_loss(x, t),
        [g.t((19,)), (g.m((19,)).to(f64 if g.ref else g.dt) * 2 - 1)],
    ),
)
L('triplet', lambda g: (lambda x, y, z: F.triplet_margin_loss(x, y, z), [g.t((19, 7)), g.t((19, 7)), g.t((19, 7))]))
L(
    'cosine_embedding',
    lambda g: (
        lambda x, y, t: F.cosine_embedding_loss(x, y, t),
        [g.t((19, 7)), g.t((19, 7)), (g.m((19,)).to(f64 if g.ref else g.dt) * 2 - 1)],
    ),
)
L('multi_margin', lambda g: (lambda y, x: F.multi_margin_loss(x, y), [g.i((19,), 7), g.t((19, 7))]))
L(
    'mlsm',
    lambda g: (
        lambda x, y: F.multilabel_soft_margin_loss(x, y),
        [g.t((19, 7)), g.m((19, 7)).to(f64 if g.ref else g.dt)],
    ),
)
L(
    'ctc',
    lambda g: (
        lambda y, x: F.ctc_loss(F.log_softmax(x, -1), y, T.tensor([20, 20]), T.tensor([5, 4])),
        [g.i((2, 5), 7, 1), g.t((20, 2, 7))],
    ),
)


# movement / index
def M(n, f):
    op(n, 'move', f)


M('reshape', lambda g: (lambda x: x.reshape(-1), [g.t()]))
M('view', lambda g: (lambda x: x.view(-1) if x.is_contiguous() else x.reshape(-1), [g.t()]))
M('transpose', lambda g: (lambda x: x.transpose(0, 1), [g.t()]))
M('permute', lambda g: (lambda x: x.permute(1, 0), [g.t()]))
M('t', lambda g: (lambda x: x.t(), [g.t()]))
M('expand', lambda g: (lambda x: x.expand(3, *x.shape), [g.t()]))
M('narrow', lambda g: (lambda x: x.narrow(0, 2, 5), [g.t()]))
M('select', lambda g: (lambda x: x.select(1, 2), [g.t()]))
M('chunk', lambda g: (lambda x: x.chunk(4, 1), [g.t()]))
M('split', lambda g: (lambda x: x.split([5, 10, 8], 1), [g.t((19, 23))]))
M('unbind', lambda g: (lambda x: x.unbind(0), [g.t((4, 23))]))
M('cat', lambda g: (lambda a, b: T.cat([a, b], -1), [g.t(), g.t()]))
M('stack', lambda g: (lambda a, b: T.stack([a, b], 1), [g.t(), g.t()]))
M('flip', lambda g: (lambda x: x.flip(0), [g.t()]))
M('roll', lambda g: (lambda x: x.roll(3, 1), [g.t()]))
M('repeat', lambda g: (lambda x: x.repeat(2, 3), [g.t()]))
M('tile', lambda g: (lambda x: T.tile(x, (2,)), [g.t()]))
M('triu', lambda g: (lambda x: T.triu(x, 1), [g.t()]))
M('tril', lambda g: (lambda x: T.tril(x, -1), [g.t()]))
M('contiguous', lambda g: (lambda x: x.contiguous(), [g.t()]))
M('squeeze', lambda g: (lambda x: x.unsqueeze(1).squeeze(1), [g.t()]))
M('unflatten', lambda g: (lambda x: x.unflatten(0, (2, -1)), [g.t((4, 5))]))
M('diagonal', lambda g: (lambda x: T.diagonal(x, 1), [g.t()]))
M('diag', lambda g: (lambda x: T.diag(x), [g.t((7,))]))
M('diag_embed', lambda g: (lambda x: T.diag_embed(x), [g.t()]))
M('repeat_interleave', lambda g: (lambda x: T.repeat_interleave(x, 3, 0), [g.t()]))
M('movedim', lambda g: (lambda x: T.movedim(x, 0, 1), [g.t()]))
M('hstack', lambda g: (lambda a, b: T.hstack([a, b]), [g.t(), g.t()]))
M('vstack', lambda g: (lambda a, b: T.vstack([a, b]), [g.t(), g.t()]))
M('dstack', lambda g: (lambda a, b: T.dstack([a, b]), [g.t(), g.t()]))
M('column_stack', lambda g: (lambda a, b: T.column_stack([a, b]), [g.t(), g.t()]))
M('fliplr', lambda g: (T.fliplr, [g.t()]))
M('flipud', lambda g: (T.flipud, [g.t()]))
M('rot90', lambda g: (T.rot90, [g.t()]))
M('broadcast_tensors', lambda g: (lambda a, b: T.broadcast_tensors(a, b), [g.t((1, 7)), g.t((5, 1))]))
M('slice_scatter', lambda g: (lambda a, b: T.slice_scatter(a, b, 0, 0, 2), [g.t((5, 6)), g.t((2, 6))]))
M('select_scatter', lambda g: (lambda a, b: T.select_scatter(a, b, 0, 1), [g.t((5, 6)), g.t((6,))]))
M('meshgrid', lambda g: (lambda a, b: T.meshgrid(a, b, indexing='ij'), [g.t((5,)), g.t((6,))]))
M('tensor_split', lambda g: (lambda x: T.tensor_split(x, 3, 1), [g.t()]))
M('unfold_t', lambda g: (lambda x: x.unfold(1, 3, 2), [g.t()]))
M('getitem', lambda g: (lambda x: x[2:9, ::2], [g.t()]))
M('getitem_none', lambda g: (lambda x: x[:, None, ...], [g.t()]))
M('getitem_idx', lambda g: (lambda i, x: x[i], [g.i((6,), 19), g.t()]))
M('getitem_mask', lambda g: (lambda m, x: x[m], [g.m((19, 23)), g.t((19, 23))]))
M(
    'setitem',
    lambda g: (lambda a, b: (lambda y: (y.__setitem__(slice(1, 3), b), y)[1])(a * 1), [g.t((5, 6)), g.t((2, 6))]),
)
M('masked_select', lambda g: (lambda m, x: T.masked_select(x, m), [g.m((19, 23)), g.t((19, 23))]))
M('gather', lambda g: (lambda i, x: T.gather(x, 1, i), [g.i((19, 7), 23), g.t((19, 23))]))
M('index_select', lambda g: (lambda i, x: T.index_select(x, 0, i), [g.i((40,), 19), g.t((19, 23))]))
M('take_along_dim', lambda g: (lambda i, x: T.take_along_dim(x, i, 1), [g.i((19, 7), 23), g.t((19, 23))]))
M('take', lambda g: (lambda i, x: T.take(x, i), [g.i((19, 7), 400), g.t((19, 23))]))
M('embedding', lambda g: (lambda i, w: F.embedding(i, w), [g.i((6, 50), 19), g.t((19, 23))]))
M('embedding_pad', lambda g: (lambda i, w: F.embedding(i, w, padding_idx=0), [g.i((6, 50), 19), g.t((19, 23))]))
M('embedding_long', lambda g: (lambda i, w: F.embedding(i, w), [g.i((4096,), 3), g.t((3, 8))]))
M('embedding_bag', lambda g: (lambda i, w: F.embedding_bag(i, w, mode='sum'), [g.i((6, 5), 19), g.t((19, 23))]))
M('embedding_bag_mean', lambda g: (lambda i, w: F.embedding_bag(i, w, mode='mean'), [g.i((6, 5), 19), g.t((19, 23))]))
M('embedding_bag_max', lambda g: (lambda i, w: F.embedding_bag(i, w, mode='max'), [g.i((6, 5), 19), g.t((19, 23))]))
M(
    'scatter',
    lambda g: (
        lambda i, x, s: T.scatter(x, 1, i, s),
        [T.stack([T.randperm(23, generator=g.g)[:7] for _ in range(19)]), g.t((19, 23)), g.t((19, 7))],
    ),
)
M(
    'scatter_add',
    lambda g: (lambda i, x, s: T.scatter_add(x, 1, i, s), [g.i((19, 30), 23), g.t((19, 23)), g.t((19, 30))]),
)
M('scatter_add_long', lambda g: (lambda i, x, s: T.scatter_add(x, 0, i, s), [g.i((8192,), 3), g.t((3,)), g.t((8192,))]))
for rd in ('sum', 'prod', 'mean', 'amax', 'amin'):
    M(
        'scatter_reduce_' + rd,
        lambda g, rd=rd: (
            lambda i, x, s: T.scatter_reduce(x, 1, i, s, rd),
            [g.i((19, 30), 23), g.t((19, 23)), g.t((19, 30))],
        ),
    )
M(
    'index_add',
    lambda g: (lambda i, x, s: T.index_add(x, 0, i, s, alpha=0.5), [g.i((30,), 19), g.t((19, 23)), g.t((30, 23))]),
)
M(
    'index_copy',
    lambda g: (
        lambda i, x, s: T.index_copy(x, 0, i, s),
        [T.randperm(19, generator=g.g)[:7], g.t((19, 23)), g.t((7, 23))],
    ),
)
M('index_fill', lambda g: (lambda i, x: T.index_fill(x, 0, i, 2.0), [g.i((5,), 19), g.t((19, 23))]))
M('masked_scatter', lambda g: (lambda m, x, s: T.masked_scatter(x, m, s), [g.m((5, 6)), g.t((5, 6)), g.t((30,))]))
M(
    'index_put',
    lambda g: (
        lambda i, x, s: T.index_put(x, (i,), s),
        [T.randperm(19, generator=g.g)[:7], g.t((19, 23)), g.t((7, 23))],
    ),
)
M(
    'index_put_acc',
    lambda g: (
        lambda i, x, s: T.index_put(x, (i,), s, accumulate=True),
        [g.i((40,), 19), g.t((19, 23)), g.t((40, 23))],
    ),
)
M(
    'index_reduce',
    lambda g: (lambda i, x, s: T.index_reduce(x, 0, i, s, 'amax'), [g.i((30,), 19), g.t((19, 23)), g.t((30, 23))]),
)
M(
    'put',
    lambda g: (lambda i, x, s: T.Tensor.put(x, i, s), [T.randperm(100, generator=g.g)[:7], g.t((19, 23)), g.t((7,))]),
)
M(
    'searchsorted',
    lambda g: (lambda s, x: T.searchsorted(s, x), [T.sort(g.t((19,), grad=False))[0], g.t((30,), grad=False)]),
)
M(
    'bucketize',
    lambda g: (lambda s, x: T.bucketize(x, s, right=True), [T.sort(g.t((19,), grad=False))[0], g.t((30,), grad=False)]),
)
M('bincount', lambda g: (lambda x: T.bincount(x), [g.i((300,), 17)]))
M('bincount_w', lambda g: (lambda x, w: T.bincount(x, w), [g.i((300,), 17), g.t((300,), grad=False)]))
M('one_hot', lambda g: (lambda x: F.one_hot(x, 17), [g.i((30,), 17)]))
M('histc', lambda g: (lambda x: T.histc(x, 10, -3, 3), [g.t((300,), grad=False)]))
M('dropout0', lambda g: (lambda x: F.dropout(x, 0.3, True), [g.t()]))
M(
    'rotary',
    lambda g: (
        lambda q, c, s: q * c + T.cat([-q[..., 8:], q[..., :8]], -1) * s,
        [g.t((2, 3, 7, 16)), g.t((7, 16), 'unit', grad=False, V='randn'), g.t((7, 16), 'unit', grad=False, V='randn')],
    ),
)
M('foreach_add', lambda g: (lambda a, b: T._foreach_add([a, b], [b, a]), [g.t((5, 6)), g.t((5, 6))]))
M('foreach_mul', lambda g: (lambda a, b: T._foreach_mul([a, b], 0.3), [g.t((5, 6)), g.t((5, 6))]))
M('foreach_norm', lambda g: (lambda a, b: T._foreach_norm([a, b]), [g.t((5, 6)), g.t((500,))]))
M('foreach_sqrt', lambda g: (lambda a, b: T._foreach_sqrt([a, b]), [g.t((5, 6), 'pos'), g.t((500,), 'pos')]))
M('foreach_lerp', lambda g: (lambda a, b: T._foreach_lerp([a], [b], 0.1), [g.t((5, 6)), g.t((5, 6))]))
M(
    'foreach_addcdiv',
    lambda g: (lambda a, b, c: T._foreach_addcdiv([a], [b], [c], -0.1), [g.t((5, 6)), g.t((5, 6)), g.t((5, 6), 'pos')]),
)
M('linspace', lambda g: (lambda x: T.linspace(0, 1, 37, dtype=x.dtype if x.is_floating_point() else f32), [g.t((1,))]))
M('arange', lambda g: (lambda x: T.arange(0, 5, 0.1, dtype=x.dtype if x.is_floating_point() else f32), [g.t((1,))]))
M('eye', lambda g: (lambda x: T.eye(5, dtype=x.dtype), [g.t((1,))]))
M('vander', lambda g: (lambda x: T.vander(x, 5), [g.t((6,))]))
M('cov', lambda g: (lambda x: T.cov(x), [g.t((5, 30))]))
M('trace', lambda g: (T.trace, [g.t((5, 6))]))
M('tensordot', lambda g: (lambda a, b: T.tensordot(a, b, dims=2), [g.t((5, 6, 7)), g.t((6, 7, 4))]))
M('kron', lambda g: (T.kron, [g.t((3, 4)), g.t((2, 5))]))
M('cumulative_trapezoid', lambda g: (lambda a: T.cumulative_trapezoid(a), [g.t()]))
M('trapz', lambda g: (lambda a: T.trapezoid(a), [g.t()]))
M('logdet', lambda g: (lambda a: T.logdet(a @ a.t() + T.eye(5, dtype=a.dtype)), [g.t((5, 5))]))
M('inv', lambda g: (lambda a: T.linalg.inv(a), [g.t((5, 5))]))
M('quantile', lambda g: (lambda a: T.quantile(a, 0.3, dim=-1), [g.t()]))
M('erfinv', lambda g: (T.erfinv, [g.t(dom='unit')]))
M('digamma', lambda g: (T.digamma, [g.t(dom='pos')]))
M('polygamma', lambda g: (lambda x: T.polygamma(1, x), [g.t(dom='pos')]))
M('igamma', lambda g: (T.igamma, [g.t(dom='pos', grad=False), g.t(dom='pos', grad=False)]))
M('i0', lambda g: (T.i0, [g.t()]))
M('angle', lambda g: (T.angle, [g.t()]))
M('entr', lambda g: (T.special.entr, [g.t(dom='pos')]))
M('nextafter', lambda g: (T.nextafter, [g.t(grad=False), g.t(grad=False)]))
M('fft', lambda g: (lambda x: T.fft.rfft(x).abs(), [g.t()]))
M(
    'rms_manual',
    lambda g: (
        lambda x, w: w * (x.float() * T.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype),
        [g.t(), g.t((g.shape()[-1],), V='randn')],
    ),
)
M(
    'clip_grad',
    lambda g: (
        lambda a: (setattr(a, 'grad', T.ones_like(a) * 3) or T.nn.utils.clip_grad_norm_([a], 1.0)),
        [g.t((5, 6))],
    ),
)
M('multinomial_skip', lambda g: (lambda x: T.cumsum(F.softmax(x, -1), -1), [g.t()]))

ELEM = [
    ('mid', 'randn'),
    ('mid', 'large'),
    ('mid', 'mod30'),
    ('mid', 'tiny'),
    ('mid', 'zeros'),
    ('mid', 'special'),
    ('mid', 'sat'),
    ('mid', 'ties'),
    ('nc', 'randn'),
    ('cl', 'randn'),
    ('empty', 'randn'),
    ('0d', 'randn'),
    ('big', 'randn'),
]
RED = [
    ('mid', 'randn'),
    ('mid', 'large'),
    ('mid', 'mod30'),
    ('mid', 'tiny'),
    ('mid', 'zeros'),
    ('mid', 'special'),
    ('mid', 'inf'),
    ('mid', 'sat'),
    ('mid', 'ties'),
    ('nc', 'randn'),
    ('long', 'randn'),
    ('long64k', 'randn'),
    ('long', 'ties'),
    ('empty', 'randn'),
    ('0d', 'randn'),
    ('row', 'randn'),
    ('one', 'randn'),
]
PROD = [
    ('mid', 'randn'),
    ('mid', 'large'),
    ('mid', 'tiny'),
    ('mid', 'zeros'),
    ('mid', 'special'),
    ('mid', 'sat'),
    ('mid', 'ties'),
    ('nc', 'randn'),
    ('long', 'randn'),
    ('long64k', 'randn'),
    ('big', 'randn'),
    ('row', 'randn'),
    ('one', 'randn'),
]
IMG = [
    ('mid', 'randn'),
    ('mid', 'large'),
    ('mid', 'tiny'),
    ('mid', 'zeros'),
    ('mid', 'special'),
    ('mid', 'sat'),
    ('mid', 'ties'),
    ('nc', 'randn'),
    ('cl', 'randn'),
    ('long', 'randn'),
    ('big', 'randn'),
    ('empty', 'randn'),
]
ATT = [
    ('mid', 'randn'),
    ('mid', 'mod30'),
    ('mid', 'large'),
    ('mid', 'tiny'),
    ('mid', 'zeros'),
    ('mid', 'special'),
    ('mid', 'inf'),
    ('mid', 'ties'),
    ('nc', 'randn'),
    ('long', 'randn'),
    ('big', 'randn'),
    ('row', 'randn'),
]
LOS = [
    ('mid', 'randn'),
    ('mid', 'mod30'),
    ('mid', 'large'),
    ('mid', 'tiny'),
    ('mid', 'zeros'),
    ('mid', 'special'),
    ('mid', 'ties'),
    ('nc', 'randn'),
    ('long', 'randn'),
    ('big', 'randn'),
    ('row', 'randn'),
]
MOV = [
    ('mid', 'randn'),
    ('mid', 'large'),
    ('mid', 'tiny'),
    ('mid', 'zeros'),
    ('mid', 'special'),
    ('mid', 'ties'),
    ('nc', 'randn'),
    ('empty', 'randn'),
    ('0d', 'randn'),
]
VAR = dict(
    unary=ELEM,
    binary=ELEM,
    binary_bc=[('mid', 'randn'), ('mid', 'large'), ('mid', 'special')],
    ternary=ELEM,
    reduce=RED,
    norm=[v for v in RED if v[0] != '0d'] + [('cl', 'randn'), ('big', 'randn')],
    product=PROD,
    conv=IMG,
    pool=IMG,
    attention=ATT,
    recurrent=[v for v in ATT if v[0] != 'row'],
    loss=LOS,
    move=MOV,
)
DTS = {'f32': f32, 'bf16': bf16, 'f16': f16, 'f64': f64, 'i32': i32, 'i64': i64, 'u8': u8, 'b1': b1}


def variants(name, dt):
    group = OPS[name][0]
    vs = VAR[group]
    if dt not in ISF:
        if group in ('norm', 'attention', 'recurrent', 'loss', 'conv'):
            return []
        vs = [
            v
            for v in vs
            if v
            in (
                ('mid', 'randn'),
                ('mid', 'large'),
                ('mid', 'zeros'),
                ('mid', 'sat'),
                ('mid', 'ties'),
                ('long', 'randn'),
                ('nc', 'randn'),
            )
        ]
        if dt == b1:
            vs = [v for v in vs if v[1] == 'randn' and v[0] in ('mid', 'long')]
        if dt in (u8, i32):
            vs = [v for v in vs if v in (('mid', 'randn'), ('mid', 'sat'), ('long', 'randn'))]
    return vs


def seed(name, dts, S, V, rep=0):
    return zlib.crc32(f'{name}.{dts}.{S}.{V}.{rep}'.encode())
