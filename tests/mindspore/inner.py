"""Which of torch's functions are several nodes of autograd: what a module's hook gets back is at the last. Prints, for
each, how many nodes it is, and six of them: inner.py"""
import torch
import torch.nn.functional as F


def r(*shape):
    return torch.randn(*shape, requires_grad=True)


x, v, w = r(4, 6, 8, 8), r(4, 7), r(4, 7)
t = torch.randint(0, 7, (4,))
fixed = w.detach()
CALLS = {
    "cross_entropy": lambda: F.cross_entropy(v, t), "nll_loss": lambda: F.nll_loss(v, t), "l1_loss": lambda: F.l1_loss(v, w),
    "mse_loss": lambda: F.mse_loss(v, w), "smooth_l1_loss": lambda: F.smooth_l1_loss(v, w), "huber_loss": lambda: F.huber_loss(v, w),
    "kl_div": lambda: F.kl_div(v, fixed.abs()), "bce": lambda: F.binary_cross_entropy(v.sigmoid(), fixed.sigmoid()),
    "bcel": lambda: F.binary_cross_entropy_with_logits(v, fixed.sigmoid()), "normalize": lambda: F.normalize(v),
    "cosine_similarity": lambda: F.cosine_similarity(v, w), "triplet_margin_loss": lambda: F.triplet_margin_loss(v, w, v * 2),
    "cosine_embedding_loss": lambda: F.cosine_embedding_loss(v, w, t.sign()),
    "margin_ranking_loss": lambda: F.margin_ranking_loss(v, w, fixed.sign()),
    "hinge_embedding_loss": lambda: F.hinge_embedding_loss(v, fixed.sign()), "instance_norm": lambda: F.instance_norm(x),
    "soft_margin_loss": lambda: F.soft_margin_loss(v, fixed.sign()), "poisson_nll_loss": lambda: F.poisson_nll_loss(v, fixed.abs()),
    "gaussian_nll_loss": lambda: F.gaussian_nll_loss(v, w, fixed.abs()), "pixel_shuffle": lambda: F.pixel_shuffle(r(1, 4, 2, 2), 2),
    "linear3d": lambda: F.linear(r(2, 3, 7), r(5, 7), torch.randn(5)), "sdpa": lambda: F.scaled_dot_product_attention(x, x, x),
    "silu": lambda: F.silu(v), "selu": lambda: F.selu(v), "celu": lambda: F.celu(v), "softmin": lambda: F.softmin(v, -1),
    "interp": lambda: F.interpolate(x, scale_factor=2), "glu": lambda: F.glu(x, 1), "relu6": lambda: F.relu6(v),
    "hardsigmoid": lambda: F.hardsigmoid(v), "softsign": lambda: F.softsign(v), "tanhshrink": lambda: F.tanhshrink(v),
    "logsigmoid": lambda: F.logsigmoid(v), "matmul3": lambda: torch.matmul(r(2, 3, 4), r(4, 5)),
    "einsum": lambda: torch.einsum("ij,kj->ik", v, w), "std": lambda: v.std(), "local_response_norm": lambda: F.local_response_norm(x, 3)}


def nodes(of, found):
    if of is not None and of not in found and "Accumulate" not in of.name():
        found.add(of)
        for g, _ in of.next_functions:
            nodes(g, found)
    return found


for name, call in CALLS.items():
    found = nodes(call().grad_fn, set())
    print(name, len(found), sorted(g.name() for g in found)[:6])
