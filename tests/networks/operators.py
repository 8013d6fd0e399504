#!/usr/bin/env python3
"""Dumps one call of each of some 90 operators, forward and backward, as torch computes it on the CPU: none is a
fault, whatever accaudit says.

    operators.py OUT [SEED]     then: accdump-read OUT | accaudit | accfirstbad | accfmt

In f32, f64 and bf16, with numbers of four sizes; needs python3-torch.
"""
import os
import random
import sys

import torch
import torch.nn.functional as F

import probe   # also finds writers
import zoo_chance as zoo
from recorder import OPS, Recorder
from writers import Msprobe

ROWS = {   # of [18, 9]
    "std": lambda x: x.std(-1), "var": lambda x: x.var(-1), "logsumexp": lambda x: torch.logsumexp(x, -1),
    "norm": lambda x: torch.norm(x, dim=-1), "normalize": lambda x: F.normalize(x, dim=-1),
    "layer_norm": lambda x: F.layer_norm(x, (9,)), "group_norm": lambda x: F.group_norm(x, 3),
    "batch_norm": lambda x: F.batch_norm(x, None, None, None, None, True),
    "cumsum": lambda x: torch.cumsum(x, 0), "prod": lambda x: torch.prod(x, -1),
    "cumprod": lambda x: torch.cumprod(x, -1), "softmax": lambda x: F.softmax(x, -1),
    "log_softmax": lambda x: F.log_softmax(x, -1), "glu": lambda x: F.glu(x[:, :8] * 1, -1),
    "max": lambda x: x.max(-1).values, "amax": lambda x: torch.amax(x, -1),
    "sort": lambda x: torch.sort(x, -1).values, "topk": lambda x: torch.topk(x, 3).values,
    "logcumsumexp": lambda x: torch.logcumsumexp(x, -1), "logaddexp": lambda x: torch.logaddexp(x, x.flip(0)),
    "atanh": lambda x: torch.atanh(torch.tanh(x)), "log": lambda x: torch.log(torch.abs(x) + 1e-6),
    "rsqrt": lambda x: torch.rsqrt(x * x + 1e-6), "reciprocal": torch.reciprocal,
    "pow": lambda x: torch.pow(torch.abs(x), 0.3), "rpow": lambda x: 2 ** x.clamp(max=9),
}
NEAR = {   # of [18, 9]: near where slopes, or what is taken a logarithm of, are what two numbers leave
    "asin": lambda x: torch.asin(torch.tanh(x)), "acos": lambda x: torch.acos(torch.tanh(x)),
    "acosh": lambda x: torch.acosh(1 + x * x), "asinh": torch.asinh, "atan": torch.atan,
    "log1p": lambda x: torch.log1p(-torch.sigmoid(x)), "erfc": torch.erfc, "cosh": lambda x: torch.cosh(x.clamp(-9, 9)),
    "logit": lambda x: torch.logit(torch.sigmoid(x)), "tanhshrink": F.tanhshrink, "tan": torch.tan,
    "confident": lambda x: F.cross_entropy(x, x.argmax(-1)),
    "confident_rows": lambda x: F.cross_entropy(x, x.argmax(-1), reduction="none"),
    "certain": lambda x: F.cross_entropy(F.log_softmax(x, -1), x.argmax(-1), reduction="none"),
    "twice": lambda x: F.log_softmax(F.log_softmax(x, -1), -1),
    "nll": lambda x: F.nll_loss(F.log_softmax(x, -1), x.argmax(-1), reduction="none"),
    "lse": lambda x: torch.logsumexp(F.log_softmax(x, -1), -1),
    "right": lambda x: F.binary_cross_entropy_with_logits(x, (x > 0).to(x.dtype)),
    "sure": lambda x: F.binary_cross_entropy(torch.sigmoid(x), (x > 0).to(x.dtype)),
    "multi": lambda x: F.multilabel_soft_margin_loss(x, (x > 0).to(x.dtype)),
    "soft": lambda x: F.soft_margin_loss(x, x.sign().detach()),
    "same": lambda x: F.kl_div(F.log_softmax(x, -1), F.softmax(x, -1).detach(), reduction="batchmean"),
    "open_gate": lambda x: F.glu(torch.cat([x, x.abs() * 4], -1), -1),
    "shut_gate": lambda x: F.glu(torch.cat([x, -x.abs() * 4], -1), -1),
    "steep": lambda x: F.elu(x, 100.0), "narrow": lambda x: F.celu(x, 0.01), "bent": lambda x: F.softplus(x, 30),
}
SIGNS = {   # of two times [18, 9] and +1 or -1 for each row
    "margin_ranking": lambda x, y, t: F.margin_ranking_loss(x[:, 0], y[:, 0], t, 0.3),
    "hinge_embedding": lambda x, y, t: F.hinge_embedding_loss(x[:, 0], t),
    "soft_margin": lambda x, y, t: F.soft_margin_loss(x[:, 0], t),
    "cosine_embedding": lambda x, y, t: F.cosine_embedding_loss(x, y, t),
    "poisson_nll": lambda x, y, t: F.poisson_nll_loss(x.clamp(max=9), y.detach().abs()),
    "gaussian_nll": lambda x, y, t: F.gaussian_nll_loss(x, x.detach().flip(0), y * y + 1e-3),
    "triplet_margin": lambda x, y, t: F.triplet_margin_loss(x, y, x.detach().flip(0)),
    "multi_margin": lambda x, y, t: F.multi_margin_loss(x, (t > 0).long()),
    "multilabel_soft_margin": lambda x, y, t: F.multilabel_soft_margin_loss(x, (y > 0).to(x.dtype)),
}

MORE = """ asin acos acosh asinh atan atanh cosh tan erfc logit tanhshrink poisson_nll_loss soft_margin_loss
    multi_margin_loss multilabel_soft_margin_loss"""


def do(f, *x):
    """A call with its gradient, if torch's CPU has both in this dtype."""
    try:
        y = f(*x)
        if y.requires_grad:
            y.backward(torch.randn(y.shape).to(y.dtype) if y.dim() else torch.ones_like(y))
    except RuntimeError:
        pass


def calls(dtype, scale, r):
    def new(*shape):
        return (torch.randn(*shape) * scale).to(dtype).requires_grad_()
    y, v = torch.randint(5, (24,)), torch.randn(24).to(dtype)
    for f in zoo.ACTIVATIONS.values():
        do(f, new(17, 9))
    for kind in zoo.CLASSES:
        do(zoo.classes(kind, r), new(24, 5), y)
    for f in zoo.VALUES.values():
        do(f, new(24), v)
    for f in zoo.PAIRS.values():
        do(f, new(24, 7), new(24, 7), v)
    for f in (*ROWS.values(), *NEAR.values()):
        do(f, new(18, 9))
    for f in SIGNS.values():
        do(f, new(18, 9), new(18, 9), (torch.randint(2, (18,)) * 2 - 1).to(dtype))
    do(torch.cdist, new(6, 9), new(7, 9))
    do(F.bilinear, new(6, 4), new(6, 5), new(3, 4, 5))
    do(F.max_pool2d, new(2, 3, 6, 6), 2)
    do(F.avg_pool2d, new(2, 3, 6, 6), 2)
    do(lambda x: F.local_response_norm(x, 3), new(2, 5, 4, 4))
    do(F.instance_norm, new(2, 5, 4, 4))
    do(lambda x, w, b: F.conv2d(x, w, b, padding=2, dilation=2), new(2, 5, 6, 6), new(4, 5, 3, 3), new(4))
    do(lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), new(2, 5, 4, 4))


def main():
    torch.manual_seed(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    for kind, (where, names) in probe.RECORDED.items():
        OPS[kind] = (where, " ".join(n for n in (names + MORE).split() if hasattr(where, n)))
    rec, r = Recorder(), random.Random(1)
    with rec.recording():
        for dtype in (torch.float32, torch.float64, torch.bfloat16):
            for scale in (1e-3, 1, 6, 30):
                calls(dtype, scale, r)
    Msprobe(os.path.join(sys.argv[1], "step0", "rank0")).write(rec.events)


main()
