#!/usr/bin/env python3
"""Op calls for the audit, with the outputs and gradients that torch computes: one stream each.

    tests/data/make_replay_fused.py tests/data/replay_fused

Attention and rotary embedding are composed of torch's simple operators, in the layouts of the
fused ones, in f32 where the data is bf16; pooling and resampling are torch's own. The largest
element of each output and gradient of every third call is off by a thousandth, in 16 bits by
half: their records say x-wrong.
"""
import gzip
import os
import sys

import msgpack
import torch
import torch.nn.functional as F

DT = {torch.float64: "f64", torch.float32: "f32", torch.bfloat16: "bf16", torch.bool: "bool",
      torch.int64: "i64"}


class Stream:
    def __init__(self):
        self.rec, self.data, self.calls, self.runs = [], [], {}, 0
        self.bad = False
        self.rec.append(["source", {"id": "00000001", "root": "/", "format": "acc"}])

    def tensor(self, key, op, call, pas, io, pos, t):
        t = t.detach().contiguous()
        if self.bad and io == "out":
            t = t.clone()
            flat = t.view(-1)
            i = flat.abs().float().argmax()
            if not (t.is_floating_point() or t.is_complex()):
                flat[i] += 1
            else:
                flat[i] *= 1.5 if t.element_size() == 2 else 1.001
        raw = t.view(torch.int16) if t.dtype == torch.bfloat16 else t
        seq = len(self.rec)
        self.rec.append(["tensor", {
            "name": f"{key}.{io}.{pos}", "src": "00000001", "seq": seq, "key": key, "op": op,
            "call": call, "pass": pas, "io": io, "pos": str(pos), "dtype": DT[t.dtype],
            "shape": list(t.shape), "x-wrong": self.bad and io == "out"}])
        self.data.append((seq, raw.numpy().tobytes()))

    def arg(self, key, op, call, io, pos, v):
        kind = {bool: "bool", int: "int", float: "float", str: "str", type(None): "None"}.get(
            type(v), "list")
        if kind == "list":
            for i, x in enumerate(v):
                self.arg(key, op, call, io, f"{pos}.{i}", x)
            return
        self.rec.append(["arg", {
            "name": f"{key}.{io}.{pos}", "src": "00000001", "seq": len(self.rec), "key": key,
            "op": op, "call": call, "pass": "forward", "io": io, "pos": str(pos), "type": kind,
            "value": v}])

    def run(self, op, fn, args, kwargs=None, like=None):
        """op is recorded with args and kwargs; fn computes it (of like, where given)."""
        kwargs = kwargs or {}
        call = self.calls[op] = self.calls.get(op, -1) + 1
        key = f"{op}.{call}.forward"
        self.bad = self.runs % 3 == 2
        self.runs += 1
        leaves = [a for a in args if isinstance(a, torch.Tensor)]
        for a in leaves:
            if a.is_floating_point():
                a.requires_grad_(True)
        for i, a in enumerate(args):
            if isinstance(a, torch.Tensor):
                self.tensor(key, op, call, "forward", "in", i, a)
            else:
                self.arg(key, op, call, "in", i, a)
        for k, v in kwargs.items():
            if isinstance(v, torch.Tensor):
                self.tensor(key, op, call, "forward", "kw", k, v)
            else:
                self.arg(key, op, call, "kw", k, v)
        out = fn(*args, **kwargs)
        outs = list(out) if isinstance(out, (tuple, list)) else [out]
        for i, o in enumerate(outs):
            self.tensor(key, op, call, "forward", "out", i, o)
        if not outs[0].requires_grad:
            return
        gout = torch.randn(outs[0].shape, dtype=torch.float64).to(outs[0].dtype)
        grads = torch.autograd.grad(outs[0], [a for a in leaves if a.requires_grad], gout,
                                    allow_unused=True)
        key = f"{op}.{call}.backward"
        self.tensor(key, op, call, "backward", "in", 0, gout)
        for i, g in enumerate(grads):
            if g is not None:
                self.tensor(key, op, call, "backward", "out", i, g)

    def write(self, path):
        head = ["acc", {"v": 1, "minor": 0, "log": []}]
        body = self.rec + [["data", {"src": "00000001", "seq": s, "off": 0, "data": d}]
                           for s, d in self.data]
        with gzip.GzipFile(path, "wb", mtime=0) as f:
            for r in [head] + body + [["end", {"n": len(body), "st": 0}]]:
                f.write(msgpack.packb(r))


def rand(*shape, dtype=torch.float64):
    return torch.randn(shape, dtype=torch.float64).to(dtype)


def softmax_attention(q, k, v, scale, keep=None, add=None):
    """q, k, v: [batch, heads, length, size]; several heads of q may share one of k."""
    group = q.shape[1] // k.shape[1]
    if q.dtype == torch.bfloat16:
        o, s = softmax_attention(q.float(), k.float(), v.float(), scale, keep, add)
        return o.to(q.dtype), s
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    s = (q @ k.transpose(-1, -2)) * scale
    if add is not None:
        s = s + add
    if keep is not None:
        s = s.masked_fill(~keep, float("-inf"))
    return torch.softmax(s, -1) @ v, s


def attention(st):
    for dt in (torch.float64, torch.float32, torch.bfloat16):
        q, k, v = rand(2, 4, 5, 8, dtype=dt), rand(2, 4, 6, 8, dtype=dt), rand(2, 4, 6, 3, dtype=dt)
        st.run("Functional.scaled_dot_product_attention",
               lambda q, k, v: softmax_attention(q, k, v, 8 ** -0.5)[0], [q, k, v])
    q, k, v = rand(2, 4, 5, 8), rand(2, 2, 6, 8), rand(2, 2, 6, 8)
    keep = torch.rand(5, 6) > 0.4
    keep[:, 0] = True
    sdp = "Functional.scaled_dot_product_attention"
    st.run(sdp, lambda q, k, v, attn_mask: softmax_attention(q, k, v, 8 ** -0.5, attn_mask)[0],
           [q, k, v], {"attn_mask": keep})
    bias = rand(2, 1, 5, 6)
    st.run(sdp, lambda q, k, v, attn_mask, scale: softmax_attention(
        q, k, v, scale, add=attn_mask)[0], [q, k, v], {"attn_mask": bias, "scale": 0.3})
    q, k, v = rand(1, 2, 7, 4), rand(1, 2, 7, 4), rand(1, 2, 7, 4)
    st.run(sdp, lambda q, k, v, m, p, c: softmax_attention(
        q, k, v, 0.5, torch.ones(7, 7).tril().bool())[0], [q, k, v, None, 0.0, True])

    # CANN: layouts, masks that say what is dropped, row results eight times over
    def cann(q, k, v, n, layout, scale, drop):
        def heads(x, n):
            if layout == "BSH":
                return x.view(x.shape[0], x.shape[1], n, -1).transpose(1, 2)
            if layout == "SBH":
                return x.view(x.shape[0], x.shape[1], n, -1).permute(1, 2, 0, 3)
            return x.transpose(1, 2) if layout == "BSND" else x
        q4 = heads(q, n)
        k4 = heads(k, n if k.dim() == 4 else k.shape[2] // q4.shape[3])
        v4 = heads(v, n if k.dim() == 4 else k.shape[2] // q4.shape[3])
        o, s = softmax_attention(q4, k4, v4, scale, None if drop is None else ~drop)
        top = s.max(-1, keepdim=True)[0]
        total = (s - top).exp().sum(-1, keepdim=True)
        if layout == "BSH":
            o = o.transpose(1, 2).reshape(q.shape)
        elif layout == "SBH":
            o = o.permute(2, 0, 1, 3).reshape(q.shape)
        elif layout == "BSND":
            o = o.transpose(1, 2)
        return o, top.expand(*top.shape[:3], 8), total.expand(*total.shape[:3], 8)

    npu = "NPU.npu_fusion_attention"
    drop = torch.ones(5, 5).triu(1).bool()
    for layout, qs, ks in (("BNSD", (2, 4, 5, 8), (2, 2, 5, 8)), ("BSND", (2, 5, 4, 8), (2, 5, 2, 8)),
                           ("BSH", (2, 5, 32), (2, 5, 16)), ("SBH", (5, 2, 32), (5, 2, 16))):
        st.run(npu, lambda q, k, v, n, lay, atten_mask, scale, keep_prob: cann(
            q, k, v, n, lay, scale, atten_mask),
            [rand(*qs), rand(*ks), rand(*ks), 4, layout],
            {"atten_mask": drop, "scale": 0.25, "keep_prob": 1.0})
    st.run(npu, lambda q, k, v, n, lay, scale, sparse_mode: cann(
        q, k, v, n, lay, scale, torch.ones(4, 6).triu(6 - 4 + 1).bool()),
        [rand(1, 2, 4, 8), rand(1, 2, 6, 8), rand(1, 2, 6, 8), 2, "BNSD"],
        {"scale": 0.3, "sparse_mode": 3})


def rotary(st):
    def half(x, c, s):
        if x.dtype == torch.bfloat16:
            return half(x.float(), c.float(), s.float()).to(x.dtype)
        a, b = x.chunk(2, -1)
        return x * c + torch.cat((-b, a), -1) * s

    def pairs(x, c, s):
        a, b = x[..., 0::2], x[..., 1::2]
        return x * c + torch.stack((-b, a), -1).flatten(-2) * s
    for dt in (torch.float64, torch.float32, torch.bfloat16):
        st.run("NPU.npu_rotary_mul", half, [rand(2, 3, 4, 8, dtype=dt), rand(1, 3, 1, 8, dtype=dt),
                                            rand(1, 3, 1, 8, dtype=dt)])
    st.run("NPU.npu_rotary_mul", lambda x, c, s, rotary_mode: pairs(x, c, s),
           [rand(2, 3, 4, 8), rand(1, 3, 1, 8), rand(1, 3, 1, 8)], {"rotary_mode": "interleave"})
    st.run("Mint.rotary_position_embedding", lambda x, c, s, m: pairs(x, c, s),
           [rand(2, 3, 4, 8), rand(1, 3, 1, 8), rand(1, 3, 1, 8), 1])


def pool(st):
    fn = "Functional."
    for dt in (torch.float64, torch.float32):
        st.run(fn + "avg_pool1d", F.avg_pool1d, [rand(2, 3, 11, dtype=dt), 3])
        st.run(fn + "max_pool1d", F.max_pool1d, [rand(2, 3, 11, dtype=dt), 3, 2, 1])
    x = [rand(2, 2, 9, 7) for _ in range(12)]
    st.run(fn + "avg_pool2d", F.avg_pool2d, [x[0], 3, 2, 1])
    st.run(fn + "avg_pool2d", F.avg_pool2d, [x[1], [3, 2], [2, 3], [1, 0]],
           {"ceil_mode": True, "count_include_pad": False})
    st.run(fn + "avg_pool2d", F.avg_pool2d, [x[2], 2, 2, 1], {"ceil_mode": True})
    st.run(fn + "avg_pool2d", F.avg_pool2d, [x[3], 2], {"divisor_override": 3})
    st.run(fn + "max_pool2d", F.max_pool2d, [x[4], 2])
    st.run(fn + "max_pool2d", F.max_pool2d, [x[5], 3, 2, 1, 2], {"ceil_mode": True})
    st.run(fn + "max_pool2d", F.max_pool2d, [x[6].relu().detach(), 3, 1])
    st.run(fn + "max_pool2d", lambda x, k, return_indices: F.max_pool2d_with_indices(x, k),
           [x[7], 3], {"return_indices": True})
    st.run(fn + "adaptive_avg_pool2d", F.adaptive_avg_pool2d, [x[8], [4, 3]])
    st.run(fn + "adaptive_avg_pool2d", F.adaptive_avg_pool2d, [x[9], 1])
    st.run(fn + "adaptive_max_pool2d", F.adaptive_max_pool2d, [x[10], [4, 3]])
    st.run(fn + "max_pool3d", F.max_pool3d, [rand(1, 2, 5, 6, 4), [2, 3, 2], 2, [1, 1, 0]])
    st.run(fn + "avg_pool3d", F.avg_pool3d, [rand(1, 2, 5, 6, 4), [2, 3, 2], 2, [1, 1, 0]])
    st.run(fn + "adaptive_avg_pool1d", F.adaptive_avg_pool1d, [rand(3, 7), 3])


def interpolate(st):
    fn = "Functional.interpolate"

    def run(shape, **kw):
        st.run(fn, F.interpolate, [rand(*shape)], kw)
    run((2, 2, 5), size=8)
    run((2, 2, 5), scale_factor=2.0)
    run((1, 2, 5, 4), size=[7, 9], mode="nearest-exact")
    run((1, 2, 9), size=4, mode="linear", align_corners=False)
    run((1, 2, 9), size=14, mode="linear", align_corners=True)
    run((2, 1, 5, 6), size=[8, 3], mode="bilinear", align_corners=False)
    run((2, 1, 5, 6), scale_factor=1.7, mode="bilinear", align_corners=False)
    run((2, 1, 5, 6), scale_factor=[1.7, 0.6], mode="bilinear", align_corners=False,
        recompute_scale_factor=True)
    run((2, 1, 5, 6), size=[9, 11], mode="bilinear", align_corners=True)
    run((2, 1, 5, 6), size=[9, 4], mode="bicubic", align_corners=False)
    run((2, 1, 5, 6), size=[9, 4], mode="bicubic", align_corners=True)
    run((1, 2, 7, 5), size=[3, 4], mode="area")
    run((1, 1, 3, 4, 5), size=[5, 3, 7], mode="trilinear", align_corners=False)
    for dt in (torch.float32, torch.bfloat16):
        st.run(fn, lambda x, size, mode: F.interpolate(x.float(), size=size, mode=mode).to(x.dtype),
               [rand(1, 2, 5, 6, dtype=dt)], {"size": [8, 3], "mode": "bilinear"})
    # The kernel of torch's CPU rounds each step, and where corners are aligned the positions, too.
    for corners in (False, True):
        st.run(fn, F.interpolate, [rand(2, 6, 7, 7, dtype=torch.bfloat16)],
               {"size": [14, 14], "mode": "bilinear", "align_corners": corners})


def main():
    os.makedirs(sys.argv[1], exist_ok=True)
    for family in (attention, rotary, pool, interpolate):
        torch.manual_seed(1)
        st = Stream()
        family(st)
        st.write(os.path.join(sys.argv[1], family.__name__ + ".acc.gz"))


if __name__ == "__main__":
    main()
