"""Of models.py: a network of two halves, as those that write down what is said: convolutions over time, an encoder, and a
decoder whose layers see their own tokens, those before, and all that the encoder made. Kept aside; scored before it taught anything."""
import torch
import torch.nn.functional as F
from torch import nn

WIDE, HEADS, TOKENS = 64, 4, 12


class Look(nn.Module):
    """Attention of x to what is given; k has no bias."""
    def __init__(self, causal):
        super().__init__()
        self.q, self.k, self.v, self.o = nn.Linear(WIDE, WIDE), nn.Linear(WIDE, WIDE, bias=False), nn.Linear(WIDE, WIDE), nn.Linear(WIDE, WIDE)
        self.causal, self.fault = causal, None

    def forward(self, x, to):
        b, t, _ = x.shape
        q, k, v = (y.view(b, -1, HEADS, WIDE // HEADS).transpose(1, 2) for y in (self.q(x), self.k(to), self.v(to)))
        if self.fault == "order":
            k, v = v, k
        s = q @ k.transpose(2, 3) * (WIDE if self.fault == "scale" else WIDE // HEADS) ** -0.5
        if self.causal and self.fault != "mask":
            s = s + torch.full((t, t), -1e9).triu(1)
        return self.o((s.softmax(-1) @ v).transpose(1, 2).reshape(b, t, WIDE))


class Hear(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.attn, self.norm2 = nn.LayerNorm(WIDE), Look(False), nn.LayerNorm(WIDE)
        self.fc1, self.fc2 = nn.Linear(WIDE, 128), nn.Linear(128, WIDE)

    def forward(self, x):
        y = self.norm1(x)
        x = x + self.attn(y, y)
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x))))


class Say(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.attn, self.norm2, self.cross, self.norm3 = nn.LayerNorm(WIDE), Look(True), nn.LayerNorm(WIDE), Look(False), nn.LayerNorm(WIDE)
        self.fc1, self.fc2, self.fault = nn.Linear(WIDE, 128), nn.Linear(128, WIDE), None

    def forward(self, x, heard, raw):
        y = self.norm1(x)
        x = x + self.attn(y, y)
        y = self.cross(self.norm2(x), raw if self.fault == "stale" else heard)
        x = y if self.fault == "lost" else x + y
        return x + self.fc2(F.gelu(self.fc1(self.norm3(x)), approximate="tanh" if self.fault == "gelu" else "none"))


class Whisper(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv1d(48, WIDE, 3, padding=1), nn.Conv1d(WIDE, WIDE, 3, stride=2, padding=1)
        self.encoder, self.middle = nn.ModuleList(Hear() for _ in range(2)), nn.LayerNorm(WIDE)
        self.place, self.embed = nn.Parameter(0.3 * torch.randn(TOKENS, WIDE)), nn.Embedding(100, WIDE)
        self.layers, self.norm = nn.ModuleList(Say() for _ in range(3)), nn.LayerNorm(WIDE)
        self.register_buffer("ids", torch.arange(2 * TOKENS).view(2, TOKENS) * 37 % 100)
        far = torch.arange(8)[:, None] * 10000 ** (-torch.arange(WIDE // 2) / (WIDE // 2))
        self.register_buffer("waves", torch.cat((far.sin(), far.cos()), 1))

    def forward(self, x):
        x = F.gelu(self.conv2(F.gelu(self.conv1(x.flatten(1, 2))))).transpose(1, 2) + self.waves
        for f in self.encoder:
            x = f(x)
        heard, y = self.middle(x), self.embed(self.ids) + self.place
        for f in self.layers:
            y = f(y, heard, x)
        return self.norm(y) @ self.embed.weight.t()


MODELS = {"whisper": Whisper}


def break_it(m, name, fault):
    """The module in which the fault is, or None where this network cannot have it; the fault put in."""
    one = m.layers[1]
    if fault == "padding":
        m.conv2.padding_mode = "reflect"
        m.conv2._reversed_padding_repeated_twice = [1, 1]
        return "conv2"
    if fault in ("stale", "lost", "gelu"):
        one.fault = fault
    elif fault in ("order", "scale"):
        one.cross.fault = fault
    elif fault == "mask":
        one.attn.fault = fault
    elif fault == "eps":
        one.norm2.eps = 1e-2
    elif fault == "bias":
        one.cross.v.bias.zero_()
    elif fault == "turned":
        m.encoder[1].fc1.weight.copy_(m.encoder[1].fc1.weight.flip(0))
        return "encoder.1"
    elif fault == "doubled":
        one.fc2.weight.mul_(1.1)
    else:
        return None
    return "layers.1"
