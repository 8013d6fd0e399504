#!/usr/bin/env python3
"""Op calls as torch's own kernels compute them on a CPU, recorded by accrecord: each is right, though it rounds on
its way, or is by a rule of its own. Made with torch 2.15:

    PYTHONPATH=python BIN=bin tests/data/make_kernels.py FOLDER && tar -C FOLDER -czf tests/data/wild/kernels.tar.gz .

FOLDER/plants has a line for each output that can be made another one: whether that is right by another rule or
wrong, the output's name, where in rank0.step0.data a byte becomes which, and where in rank0.acc the checksum's four
do, in octal.
"""
import json
import os
import subprocess
import sys
import zlib

import accrecord
import torch
import torch.nn.functional as F

torch.manual_seed(7)
torch.set_num_threads(1)
bf16, f16, f32, f64 = torch.bfloat16, torch.float16, torch.float32, torch.float64


def rand(*shape, dtype=f32):
    return torch.randn(shape, dtype=f64).to(dtype).requires_grad_(True)


def casts():
    torch.arange(-300, 300, dtype=torch.int32).to(torch.int8)
    torch.arange(-290, 300, dtype=torch.int64).to(torch.uint8)
    torch.tensor([3e9, -3e9, 1.5, -1.5, 7.0]).to(torch.int32)
    torch.tensor([-1.0, -2.5, 3.7, 255.9, 0.0]).to(torch.uint8)
    torch.tensor([400.0, 448.0, 460.0, 1000.0, -1000.0, 1.0]).to(torch.float8_e4m3fn)
    torch.tensor([3.0, 2.5, 5.0, 6.0, 1.5, 17.0, 1e6]).to(torch.float8_e8m0fnu)
    torch.tensor([200, 100, 7], dtype=torch.uint8) + torch.tensor([100, 100, 7], dtype=torch.uint8)
    torch.matmul(torch.randint(0, 9, (3, 40)).to(torch.uint8), torch.randint(0, 9, (40, 4)).to(torch.uint8))
    torch.addcmul(*(torch.randint(0, 9, (3, 4)) for _ in range(3)), value=0.7)


def numbers():
    for t in (f32, bf16, f16):
        torch.fmod(rand(9, 7, dtype=t), 0.7)
        torch.remainder(rand(9, 7, dtype=t), 0.7)
    near = torch.tensor([0.69921875, 0.703125, 0.5, 1.0], dtype=bf16).requires_grad_(True)
    near.clamp(-0.5, 0.7).sum().backward()
    rand(9, 7).where(torch.rand(9, 7) < 0.5, rand(9, 7)).sum()
    F.rms_norm((rand(4, 16, dtype=bf16) * 0.01).detach(), (16,))


def roundings():
    F.mse_loss(rand(16, 16, dtype=bf16), rand(16, 16, dtype=bf16), reduction="none")
    F.binary_cross_entropy_with_logits(rand(16, 16, dtype=bf16), torch.rand(16, 16).to(bf16), reduction="none")
    F.scaled_dot_product_attention(*(rand(1, 2, 24, 8, dtype=bf16) for _ in range(3)))
    torch.index_add(rand(5, 16, dtype=bf16), 0, torch.randint(0, 5, (60,)), rand(60, 16, dtype=bf16), alpha=0.5)
    torch.linalg.cross(rand(12, 3, dtype=bf16), rand(12, 3, dtype=bf16))
    torch.prod(rand(24, 16, dtype=bf16), 0)
    torch.logit(torch.rand(8, 16).to(bf16))
    w = rand(3, 4, dtype=bf16)
    F.embedding(torch.randint(0, 3, (900,)), w).backward(rand(900, 4, dtype=bf16).detach())


def kinks():
    x = rand(40, 50)
    y = torch.randn(40, 50)
    y[0, :9] = x[0, :9].detach() + torch.randn(9) * 1e-7  # nearer than a step of the test
    F.l1_loss(x, y).backward()
    x = rand(9, 7, dtype=f16)
    (x - torch.tanh(x)).sum()
    F.tanhshrink(x).backward(rand(9, 7, dtype=f16).detach())
    x = (rand(9, 7) * 1e15).detach().requires_grad_(True)
    torch.round(x).backward(torch.ones_like(x))


def others():
    def back(y):
        torch.autograd.backward([y], [rand(*y.shape, dtype=y.dtype).detach()])

    for t in (f32, bf16):
        back(torch.tensordot(rand(3, 4, 5, dtype=t), rand(5, 4, 2, dtype=t), dims=([1, 2], [1, 0])))
        back(torch.kron(rand(2, 3, dtype=t), rand(4, 2, dtype=t)))
        back(torch.linalg.multi_dot([rand(4, 7, dtype=t), rand(7, 6, dtype=t), rand(6, 3, dtype=t)]))
        back(torch.einsum("ik,kj,k->ij", rand(4, 7, dtype=t), rand(7, 3, dtype=t), rand(7, dtype=t)))
        for mode in ("reflect", "replicate", "circular"):
            back(F.pad(rand(2, 3, 5, dtype=t), (2, 1), mode=mode))
        back(F.lp_pool2d(rand(1, 2, 6, 6, dtype=t), 2, 3, 2))
        back(F.cross_entropy(rand(5, 9, dtype=t), F.softmax(rand(5, 9, dtype=t).detach(), -1), label_smoothing=0.1))
        back(torch.scatter_reduce(rand(4, 5, dtype=t), 1, torch.randint(0, 5, (4, 9)), rand(4, 9, dtype=t), "mean"))
        back(torch.trapezoid(rand(4, 9, dtype=t), dx=0.3))
        back(torch.cumulative_trapezoid(rand(4, 9, dtype=t)))
        back(torch.trace(rand(6, 6, dtype=t)))
        torch.round(rand(9, 7, dtype=t), decimals=2)
        torch.angle(rand(9, 7, dtype=t))
    for how in ("bilinear", "bicubic"):
        for edge in ("zeros", "border", "reflection"):
            back(F.grid_sample(rand(1, 2, 5, 6), (torch.rand(1, 4, 3, 2) * 2.4 - 1.2).requires_grad_(True),
                               mode=how, padding_mode=edge, align_corners=edge == "border"))
    back(torch.special.erfinv(torch.tanh(rand(9, 7))))
    back(torch.special.digamma(rand(9, 7)))
    back(torch.special.entr(rand(9, 7).abs()))
    back(torch.special.i0(rand(9, 7)))
    mask = torch.rand(6, 6) < 0.6
    mask[2] = False
    F.scaled_dot_product_attention(*(rand(1, 2, 6, 8) for _ in range(3)), attn_mask=mask)


def more_roundings():
    def back(y, g=1):
        torch.autograd.backward([y], [rand(*y.shape, dtype=y.dtype).detach() * g])

    def big(*shape, dtype, by):
        return (rand(*shape, dtype=f64) * by).to(dtype).detach().requires_grad_(True)

    back(F.hardsigmoid(rand(9, 7, dtype=f64)))  # a sixth, and alpha, in single precision
    back(F.celu(rand(9, 7, dtype=f64), 0.7))
    for by in (3e-5, 3e4):
        back(torch.log10(big(9, 7, dtype=f16, by=by).abs()))
    zero = torch.zeros(4, 3, dtype=bf16, requires_grad=True)
    back(torch.atan2(zero, torch.zeros(4, 3, dtype=bf16, requires_grad=True)))
    for t, by in ((f16, 30), (bf16, 30), (f32, 1)):
        n = 1 if t == f32 else 11
        back(F.scaled_dot_product_attention(*(big(1, 2, n, 16, dtype=t, by=by) for _ in range(3))))
    F.cross_entropy(rand(40, 30, dtype=f16), torch.randint(0, 30, (40,)), torch.rand(30).to(f16))
    F.cross_entropy(big(9, 23, dtype=bf16, by=30), torch.randint(0, 23, (9,)), label_smoothing=0.1, reduction="sum")
    x = torch.randint(-9, 9, (5, 6))
    torch.index_add(x, 0, torch.randint(0, 5, (9,)), torch.randint(-9, 9, (9, 6)), alpha=0.5)
    torch.addmm(x[:, :5], x, x.T, beta=0.5, alpha=2)
    F.interpolate(torch.randint(0, 255, (1, 2, 7, 6)).to(torch.uint8), scale_factor=2, mode="bilinear")
    back(F.batch_norm(big(4, 3, 5, dtype=f32, by=1e38), None, None, None, None, True))
    F.conv_transpose1d(big(1, 4, 7, dtype=f16, by=30000), big(4, 3, 3, dtype=f16, by=30000), stride=2)
    torch.fmod(big(9, 7, dtype=f64, by=1e308), 0.7)
    torch.sin(rand(40, 40, dtype=bf16))


def slopes():
    """Gradients made of what was rounded on the way, and sums in 16 bits."""
    def some(*shape, dtype, by=1.0):
        with accrecord._now.quiet():
            return (torch.randn(shape) * by).to(dtype).requires_grad_(True)

    def back(y):
        torch.autograd.backward([y], [some(*y.shape, dtype=y.dtype).detach()])

    for t, f, gates, by in ((bf16, torch.rnn_tanh, 1, 30), (bf16, torch.gru, 3, 30), (f16, torch.gru, 3, 0.3)):
        weights = [some(gates * 8, *n, dtype=t, by=by) for n in ((6,), (8,), (), ())]
        back(f(some(7, 3, 6, dtype=t), some(1, 3, 8, dtype=t), weights, True, 1, 0.0, True, False, False)[0])
    weights = [some(8, *n, dtype=bf16) for n in ((6,), (8,), (), ())]
    torch.rnn_relu(some(40, 3, 6, dtype=bf16), some(1, 3, 8, dtype=bf16), weights, True, 1, 0.0, True, False, False)
    for f in torch.logaddexp, torch.logaddexp2, torch.atan2:
        back(f(some(19, 23, dtype=f16, by=30), some(19, 23, dtype=f16, by=30)))
    with accrecord._now.quiet():
        x = some(40, 40, dtype=bf16).detach().abs().requires_grad_(True)
    back(torch.pow(x, some(40, 40, dtype=bf16)))
    back(torch.addcdiv(*(some(90, 40, dtype=f16) for _ in range(3))))
    x, y = some(300, 23, dtype=bf16), torch.randint(0, 23, (300,))
    back(F.cross_entropy(x * 0, y))
    back(F.cross_entropy(x.detach().requires_grad_(True), y, torch.rand(23).to(bf16)))
    back(F.layer_norm(some(4096, 12, dtype=bf16), (12,), some(12, dtype=bf16), some(12, dtype=bf16)))  # in parts


# Element by byte: 300 is saturated, 1000 is 448; and what no rule gives.
PLANTS = """
right Tensor.to.0.forward 0 128
right Tensor.to.4.forward 3 126
right Tensor.add.0.forward 0 255
wrong Tensor.to.0.forward 0 77
wrong Tensor.to.1.forward 1 7
wrong Tensor.to.2.forward 0 5
wrong Tensor.to.3.forward 0 9
wrong Tensor.to.4.forward 3 56
wrong Tensor.to.5.forward 0 131
wrong Tensor.add.0.forward 0 1
wrong Torch.matmul.0.forward 2 1
wrong Torch.fmod.1.forward 1 65
wrong Tensor.clamp.0.backward 7 64
wrong Functional.mse_loss.0.forward 1 65
wrong Torch.prod.0.forward 1 66
wrong Functional.l1_loss.0.backward 403 64
wrong Functional.tanhshrink.0.backward 1 120
wrong Torch.round.0.backward 3 63
wrong Torch.tensordot.0.forward 3 65
wrong Torch.kron.0.backward 3 65
wrong Torch.linalg.multi_dot.0.forward 3 65
wrong Torch.einsum.0.forward 3 65
wrong Torch.einsum.0.backward 3 65
wrong Functional.pad.0.forward 3 65
wrong Functional.pad.1.backward 3 65
wrong Functional.lp_pool2d.0.forward 3 65
wrong Functional.cross_entropy.0.forward 3 65
wrong Functional.cross_entropy.0.backward 3 65
wrong Torch.scatter_reduce.0.backward 3 65
wrong Torch.trapezoid.0.forward 3 65
wrong Torch.trace.0.backward 3 65
wrong Torch.round.1.forward 2 0
wrong Functional.grid_sample.1.forward 3 65
wrong Functional.grid_sample.4.backward 3 65
wrong Functional.scaled_dot_product_attention.2.backward 3 92
wrong Torch.index_add.1.forward 0 77
wrong Functional.interpolate.0.forward 0 3
wrong Functional.hardsigmoid.0.backward 5 65
wrong Torch.sin.0.forward 1 65
wrong Torch.special.erfinv.0.forward 3 65
wrong Torch.special.i0.0.forward 3 66
wrong Functional.scaled_dot_product_attention.1.forward 3 65
wrong Torch.gru.1.backward 3 66
wrong Torch.gru.1.backward.output.3 3 66
wrong Torch.rnn_relu.0.forward 3 66
wrong Torch.logaddexp2.0.backward 3 66
wrong Torch.atan2.1.backward 3 66
wrong Torch.pow.0.backward 3 67
wrong Torch.addcdiv.0.backward.output.2 3 86
wrong Functional.cross_entropy.5.backward 3 66
wrong Functional.layer_norm.0.backward.output.0 3 66
wrong Functional.layer_norm.0.backward.output.1 3 69
"""


def plants(folder):
    said = subprocess.run(f"{os.environ['BIN']}/accdump-read {folder} | {os.environ['BIN']}/accfmt --json",
                          shell=True, capture_output=True, text=True, check=True).stdout
    at = {r["name"]: r for r in map(json.loads, said.splitlines()) if "off" in r}
    record = open(f"{folder}/rank0.acc", "rb").read()
    data = open(f"{folder}/rank0.step0.data", "rb").read()
    with open(f"{folder}/plants", "w") as f:
        for kind, name, byte, value in (line.split() for line in PLANTS.split("\n") if line):
            name += "" if ".output." in name else ".output.0"
            r = at[name]
            old = bytearray(data[r["off"]:r["off"] + r["len"]])
            crc = record.index(zlib.crc32(old).to_bytes(4, "big"), record.index(name.encode()))
            old[int(byte)] = int(value)
            print(kind, name, r["off"] + int(byte), oct(int(value))[2:], crc,
                  *(oct(b)[2:] for b in zlib.crc32(old).to_bytes(4, "big")), file=f)


if len(sys.argv) > 2:  # a recording ends with its process
    accrecord.start_record(output_dir=sys.argv[1], record_level=2, record_stack=False)
    for part in casts, numbers, roundings, kinks, others, more_roundings, slopes:
        part()
else:
    subprocess.run([sys.executable, *sys.argv, "record"], check=True)
    plants(sys.argv[1])
