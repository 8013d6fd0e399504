"""Attention, as it is written by hand, by einsum, by one product over heads, and by a kernel nobody sees into."""
import math

import numpy as np
import torch
import torch.nn.functional as F


class Flash(torch.autograd.Function):
    """A vendor's kernel: computes elsewhere, in f32, and gives one tensor. q, k, v: batch, heads, tokens, each."""
    @staticmethod
    def probabilities(q, k, hidden, scale):
        s = np.einsum("bhtd,bhsd->bhts", q, k) * scale
        if hidden is not None:
            s = np.where(hidden, -np.inf, s)
        s = np.exp(s - s.max(-1, keepdims=True))
        return s / s.sum(-1, keepdims=True)

    @staticmethod
    def seen(*tensors):
        with torch._C.DisableTorchFunction():
            return [None if t is None else t.detach().float().numpy() if t.is_floating_point() else t.numpy() for t in tensors]

    @staticmethod
    def given(array, dtype):
        with torch._C.DisableTorchFunction():
            return torch.from_numpy(np.ascontiguousarray(array)).to(dtype)

    @staticmethod
    def forward(ctx, q, k, v, hidden, scale):
        ctx.save_for_backward(q, k, v)
        ctx.hidden, ctx.scale = hidden, scale
        nq, nk, nv, nh = Flash.seen(q, k, v, hidden)
        return Flash.given(np.einsum("bhts,bhsd->bhtd", Flash.probabilities(nq, nk, nh, scale), nv), q.dtype)

    @staticmethod
    def backward(ctx, g):
        q, k, v, h, ng = Flash.seen(*ctx.saved_tensors, ctx.hidden, g)
        p = Flash.probabilities(q, k, h, ctx.scale)
        dp = np.einsum("bhtd,bhsd->bhts", ng, v)
        ds = p * (dp - (dp * p).sum(-1, keepdims=True)) * ctx.scale
        out = np.einsum("bhts,bhsd->bhtd", ds, k), np.einsum("bhts,bhtd->bhsd", ds, q), np.einsum("bhts,bhtd->bhsd", p, ng)
        return (*(Flash.given(a, g.dtype) for a in out), None, None)


def attend(c, q, k, v, hidden):
    """Of q, k, v (batch, heads, tokens, each) the context, as the device's program of this seed computes it;
    hidden: bools that are true where nothing is to be seen, or None."""
    b, heads, t, each = q.shape
    scale = 1 / math.sqrt(each)
    with c.at("scale", "diagonal", "nomask"):
        if c.has("scale"):
            scale = 1 / math.sqrt(each * heads)
        if c.has("nomask"):
            hidden = None
        if c.has("diagonal"):
            hidden = torch.ones(t, t, dtype=torch.bool).triu(2)
        way = c.pick("attention", "written", "einsum", "baddbmm", "flash")
        if way == "flash":
            return Flash.apply(q, k, v, hidden, scale)
        if way == "einsum":
            s = torch.einsum("bhtd,bhsd->bhts", q * scale, k)
        elif way == "baddbmm":
            room = torch.zeros(b * heads, t, t, dtype=q.dtype)
            s = torch.baddbmm(room, q.reshape(b * heads, t, each), k.reshape(b * heads, t, each).transpose(1, 2), alpha=scale)
            s = s.view(b, heads, t, t)
        else:
            s = q @ k.transpose(-1, -2) * scale
        if hidden is not None:
            fill = c.pick("fill", "inf", "where", "finite")
            if fill == "where":
                s = torch.where(hidden, torch.full((), torch.finfo(s.dtype).min, dtype=s.dtype), s)
            else:
                s = s.masked_fill(hidden, -1e4 if fill == "finite" else float("-inf"))
        soft = c.pick("softmax", "torch", "float", "written")
        if soft == "float":
            p = F.softmax(s.float(), -1).to(q.dtype)
        elif soft == "written":
            e = torch.exp(s - s.amax(-1, keepdim=True))
            p = e / e.sum(-1, keepdim=True)
        else:
            p = torch.softmax(s, -1)
    return torch.einsum("bhts,bhsd->bhtd", p, v) if way == "einsum" else p @ v
