"""The network behind the demo dumps: a tiny transformer, one training step.

tests/data/make_dumps.py runs it twice, once as the trusted bench and once as the device
under test, and writes down every call as a recorder does. The line numbers in the dumps'
call stacks are those of this file.
"""
import math

import torch
import torch.nn.functional as F
from torch import nn

VOCAB = 19


def angles(seq, dim):
    """cos and sin of the rotary position embedding, [seq, dim] each."""
    freq = torch.reciprocal(torch.pow(10000., torch.arange(0, dim, 2) / dim))
    t = torch.einsum("i,j->ij", torch.arange(seq).float(), freq)
    t = torch.cat([t, t], dim=-1)
    return torch.cos(t), torch.sin(t)


def rotate(x, cos, sin):
    a, b = torch.chunk(x, 2, dim=-1)
    return x * cos + torch.cat([torch.neg(b), a], dim=-1) * sin


class Attention(nn.Module):
    def __init__(self, dim, heads, fill):
        super().__init__()
        self.heads, self.fill = heads, fill
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x, rope, mask):
        b, s, d = x.shape
        qkv = self.qkv(x).reshape(b, s, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        qk = rotate(qkv[:2], *rope)
        score = torch.matmul(qk[0], qk[1].transpose(-2, -1)) / math.sqrt(d // self.heads)
        prob = F.softmax(score.masked_fill(mask, self.fill), dim=-1)
        y = torch.matmul(prob, qkv[2])
        return self.proj(y.permute(0, 2, 1, 3).reshape(b, s, d))


class MLP(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc1 = nn.Linear(dim, 2 * dim)
        self.fc2 = nn.Linear(2 * dim, dim)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x)))


class Block(nn.Module):
    def __init__(self, dim, heads, fill):
        super().__init__()
        self.ln1 = nn.LayerNorm(dim)
        self.attn = Attention(dim, heads, fill) if heads else None
        self.ln2 = nn.LayerNorm(dim)
        self.mlp = MLP(dim)

    def forward(self, x, rope, mask):
        if self.attn is not None:
            x = x + self.attn(self.ln1(x), rope, mask)
        return x + self.mlp(self.ln2(x))


class Model(nn.Module):
    """heads = 0 leaves the attention out."""

    def __init__(self, dim=8, layers=2, heads=2, fill=-10000., vocab=VOCAB):
        super().__init__()
        self.dim, self.heads = dim, heads
        self.emb = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList(Block(dim, heads, fill) for _ in range(layers))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab, bias=False)

    def forward(self, ids):
        x = self.emb(ids)
        seq, rope, mask = ids.shape[1], None, None
        if self.heads:
            rope = angles(seq, self.dim // self.heads)
            mask = torch.ones(seq, seq).triu(1).bool()
        for layer in self.layers:
            x = layer(x, rope, mask)
        return self.head(self.norm(x))


def step(model, ids, target):
    logits = model(ids)
    loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), target.reshape(-1))
    loss.backward()
    return loss
