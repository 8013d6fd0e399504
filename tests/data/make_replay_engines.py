#!/usr/bin/env python3
"""Op calls by the names and attributes of ONNX, OpenVINO, ggml and lax, with what torch computes of the same: one stream.

    tests/data/make_replay_engines.py tests/data/replay_engines

As in make_replay_fused.py, the largest element of each third output is off."""
import os
import sys

import torch
import torch.nn.functional as F

from make_replay_fused import Stream


def nodes(st):
    r = torch.randn
    ints = torch.tensor
    x, w, b, p = r(2, 3, 4), r(4), r(4), r(2, 3, 4).abs() + 1
    image, kernel, bias = r(1, 2, 6, 5), r(4, 2, 3, 3), r(4)
    # An engine has no backward pass.
    run = lambda op, fn, args, **attrs: st.run(op, lambda *a, **k: fn(*(t.detach() for t in a)), args, attrs)
    run("Transpose", lambda x: x.permute(2, 0, 1), [x], perm=[2, 0, 1])
    run("permute", lambda x: x.permute(2, 1, 0), [x], permutation=[2, 1, 0])
    run("Reshape", lambda x, s: x.reshape(3, 8), [x, ints([3, 8])], allowzero=0)
    run("Unsqueeze", lambda x, a: x[:, None], [x, ints([1])])
    run("Expand", lambda x, s: x.expand(5, 2, 3, 4), [x, ints([5, 1, 1, 1])])
    run("LayerNormalization", lambda x, w, b: F.layer_norm(x, (4,), w, b, 0.1), [x, w, b], axis=-1, epsilon=0.1)
    run("Gelu", lambda x: F.gelu(x, approximate="tanh"), [x], approximate="tanh")
    run("Softmax", lambda x: x.softmax(1), [x], axis=1)
    run("ReduceMean", lambda x, a: x.mean(1, keepdim=True), [x, ints([1])], keepdims=1)
    run("Concat", lambda *a: torch.cat(a, 2), [x, p], axis=2)
    run("concatenate", lambda *a: torch.cat(a, 1), [x, p], dimension=1)
    run("Conv", lambda x, w, b: F.conv2d(x, w, b, (2, 1), (1, 0), (1, 1)), [image, kernel, bias], strides=[2, 1], pads=[1, 0, 1, 0],
        dilations=[1, 1], group=1)
    run("Conv", lambda x, w: F.conv2d(x, w, None, 1, 1, 1, 2), [image, kernel[:, :1]], pads=[1, 1, 1, 1], group=2)
    for op, fn in ("Multiply", torch.mul), ("Subtract", torch.sub), ("Divide", torch.div), ("MUL", torch.mul), ("ADD", torch.add):
        run(op, fn, [x, p])
    run("Power", torch.pow, [p, x])
    for op, fn in ("logistic", torch.sigmoid), ("negate", torch.neg), ("Swish", F.silu), ("SQR", torch.square), ("TANH", torch.tanh):
        run(op, fn, [x])
    run("SQRT", torch.sqrt, [p])
    run("Multiply", torch.mul, [x.double(), p.double()])
    run("Softmax", lambda x: x.softmax(2), [x.double()], axis=2)
    run("MUL_MAT", lambda w, x: x @ w.T, [r(5, 4), r(3, 4)])
    run("Gemm", lambda x, y, b: 2 * x @ y.T + 0.5 * b, [r(5, 4), r(3, 4), r(3)], alpha=2.0, beta=0.5, transB=1)
    run("Gemm", lambda x, y: x.T @ y, [r(4, 5), r(4, 3)], transA=1)
    run("MatMul", lambda x, y: x @ y.transpose(1, 2), [x, r(2, 5, 4)], transpose_a=False, transpose_b=True)
    run("MaxPool", lambda x: F.max_pool2d(x, 2, (1, 2), 1), [image], kernel_shape=[2, 2], strides=[1, 2], pads=[1, 1, 1, 1])
    run("AveragePool", lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), [image], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    run("Convolution", lambda x, w: F.conv2d(F.pad(x, (0, 1, 1, 2)), w), [image, kernel], strides=[1, 1], pads_begin=[1, 0], pads_end=[2, 1], dilations=[1, 1])
    for op, fn in ("aten.mul.Tensor", torch.mul), ("aten.softmax.int", lambda x: x.softmax(1)), ("aten::neg", torch.neg):
        run(op, fn, [x, p][: 2 if "mul" in op else 1], **({"dim": 1} if "softmax" in op else {}))
    ggml(run)
    lax(run)
    run("InstanceNormalization", lambda x, w, b: F.instance_norm(x, weight=w, bias=b, eps=0.1), [r(2, 3, 4, 5), r(3), r(3)], epsilon=0.1)


def ggml(run):
    """As examples/engines/llama_cb_eval.h records them; scores of two heads to one of the keys, as of grouped queries."""
    r, ints = torch.randn, torch.tensor
    run("RMS_NORM", lambda x: x * (x.square().mean(-1, keepdim=True) + 0.1).rsqrt(), [r(2, 3, 8)], eps=0.1)
    run("NORM", lambda x: F.layer_norm(x, (8,), eps=0.1), [r(2, 3, 8)], eps=0.1)
    run("MUL_MAT", lambda w, x: x @ w.repeat_interleave(2, 0).transpose(1, 2), [r(2, 5, 8), r(4, 3, 8)])
    run("MUL_MAT", lambda w, x: x @ w.repeat_interleave(3, 1).transpose(2, 3), [r(2, 1, 5, 8), r(2, 3, 2, 8)])
    mask = torch.zeros(3, 5).masked_fill(torch.ones(3, 5).triu(2).bool(), -torch.inf)
    run("SOFT_MAX", lambda x, m: (0.25 * x + m).softmax(-1), [r(4, 3, 5), mask], scale=0.25, max_bias=0.0)
    run("SWIGLU", lambda x, y: F.silu(x) * y, [r(3, 8), r(3, 8)], swapped=False)
    run("SWIGLU", lambda x: F.silu(x[:, :4]) * x[:, 4:], [r(3, 8)], swapped=False)
    run("GET_ROWS", lambda w, i: w[i], [r(7, 4), ints([3, 0, 6])])

    def rope(mode, n):
        def turned(x, pos):
            a = pos.double()[:, None, None] * 0.5 * 10000.0 ** (-torch.arange(n // 2).double() / (n // 2))
            z = x.double()[..., :n].unflatten(-1, (2, -1) if mode == 2 else (-1, 2))
            if mode == 0:
                z = z.transpose(-1, -2)
            z = torch.stack((z[..., 0, :] * a.cos() - z[..., 1, :] * a.sin(), z[..., 1, :] * a.cos() + z[..., 0, :] * a.sin()), -2)
            return torch.cat(((z if mode == 2 else z.transpose(-1, -2)).flatten(-2), x.double()[..., n:]), -1).float()
        run("ROPE", turned, [r(3, 2, 8), ints([1, 70, 900])], n_dims=n, mode=mode, freq_base=10000.0, freq_scale=0.5, ext_factor=0.0, attn_factor=1.0)
    for mode in 0, 2, 0:
        rope(mode, 8 if mode else 6)


def lax(run):
    r = torch.randn
    run("dot_general", lambda x, y: x @ y, [r(3, 4), r(4, 5)], dimension_numbers="(((1,), (0,)), ((), ()))")
    run("dot_general", lambda x, y: torch.einsum("kbmn,bnpk->bmp", x, y), [r(4, 2, 3, 6), r(2, 6, 5, 4)], dimension_numbers="(((0, 3), (3, 1)), ((1,), (0,)))")
    run("dot_general", lambda x, y: torch.einsum("abm,anb->abmn", x, y), [r(2, 4, 3), r(2, 5, 4)], dimension_numbers="(((), ()), ((0, 1), (0, 2)))")


def main():
    os.makedirs(sys.argv[1], exist_ok=True)
    torch.manual_seed(1)
    st = Stream()
    nodes(st)
    st.write(os.path.join(sys.argv[1], "nodes.acc.gz"))


main()
