"""Computes things with and without recording into folders of OUT, and wants the same bits. Needs torch.

Usage: same.py OUT"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from nets import accrecord  # noqa: E402

OPTIMIZERS = "SGD Adam AdamW RMSprop Adagrad Adadelta Adamax ASGD NAdam RAdam Rprop".split()


def grads(net):
    return [p.grad for p in net.parameters()]


def encoder():
    net = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)
    y = net(torch.randn(2, 5, 8))
    y.sum().backward()
    return [y, *grads(net)]


def packed():
    net = nn.LSTM(3, 4, 2, bidirectional=True)
    y, (h, _) = net(nn.utils.rnn.pack_padded_sequence(torch.randn(5, 2, 3), [5, 3]))
    y = nn.utils.rnn.pad_packed_sequence(y)[0]
    (y.sum() + h.sum()).backward()
    return [y, *grads(net)]


def checkpoints():
    net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Dropout(0.3), nn.Linear(3, 3))
    x = torch.randn(2, 3, requires_grad=True)
    for reentrant in False, True:
        checkpoint(net, x, use_reentrant=reentrant).pow(2).sum().backward()
    return [x.grad, *grads(net)]


def double_backward():
    x, w = torch.randn(4, requires_grad=True), torch.randn(4, requires_grad=True)
    g, = torch.autograd.grad((x.sin() * w).sum(), x, create_graph=True)
    g.pow(2).sum().backward()
    return [x.grad, w.grad]


def accumulation():
    net = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for _ in range(2):
        for _ in range(3):
            (net(torch.randn(4, 3)).mean() / 3).backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.01)
        opt.step()
        opt.zero_grad(set_to_none=True)
    return list(net.parameters()) + list(net.buffers())


def hooks():
    net = nn.Linear(3, 3)
    net.register_full_backward_hook(lambda m, gin, gout: (gin[0] * 2,))
    x = torch.randn(2, 3, requires_grad=True)
    h = x * 2
    h.register_hook(lambda g: g * 3)
    h.retain_grad()
    net(h).sum().backward()
    return [x.grad, h.grad]


def twice():
    """The same tensor as several arguments: of attention autograd knows one gradient, of the rest each."""
    net = nn.MultiheadAttention(8, 2, batch_first=True)
    x, b, m = (torch.randn(*s, requires_grad=True) for s in ((2, 5, 8), (2, 4, 4), (4, 4)))
    y, z, n = x * 1.5, b * 1.5, m * 1.5
    a = net(y, y, y, need_weights=False)[0]
    t = [torch.matmul(z, z), z @ z, torch.bmm(z, z), n @ n, n * n, torch.einsum("ij,kj->ik", n, n), torch.addmm(n, n, n)]
    (a.pow(2).sum() + sum(u.pow(2).sum() for u in t)).backward()
    return [x.grad, b.grad, m.grad, *grads(net)]


def views():
    leaf = torch.randn(4, 4, requires_grad=True)
    x = leaf * 1
    x.view(-1)[::2].mul_(2)
    x[1] = 0
    x[:, 0].add_(1)
    a, b = x.chunk(2)
    d, out = torch.cat([a, b]), torch.empty(4, 4)
    torch.mul(d.detach(), 2, out=out[:, :])
    d.sum().backward()
    return [out, d, leaf.grad]


def rows():
    """Of layer_norm's weight the kernel adds the gradients of thousands of rows in 16 bits."""
    x, w, b = (torch.randn(*n, dtype=torch.bfloat16, requires_grad=True) for n in ((4096, 64), (64,), (64,)))
    y = nn.functional.layer_norm(x, (64,), w, b)
    y.backward(torch.randn_like(y))
    return [y, x.grad, w.grad, b.grad]


def optimizers():
    out = []
    for name in OPTIMIZERS:
        p = nn.Parameter(torch.randn(3, 3))
        opt = getattr(torch.optim, name)([p], lr=0.01)
        for _ in range(2):
            p.grad = torch.randn(3, 3)
            opt.step()
        out.append(p)
    p = nn.Parameter(torch.randn(3, 3))
    opt = torch.optim.LBFGS([p], max_iter=3)

    def closure():
        opt.zero_grad()
        loss = (p ** 2).sum()
        loss.backward()
        return loss
    opt.step(closure)
    return out + [p]


def main(out):
    torch.set_num_threads(1)
    for case in (encoder, packed, checkpoints, double_backward, accumulation, hooks, twice, views, rows, optimizers):
        torch.manual_seed(0)
        plain = [t.detach().clone() for t in case()]
        torch.manual_seed(0)
        with accrecord.record(output_dir=os.path.join(out, case.__name__)):
            recorded = case()
        assert len(plain) == len(recorded) and all(map(torch.equal, plain, recorded)), case.__name__


if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    main(sys.argv[1])
