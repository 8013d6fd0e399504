#!/usr/bin/python3
"""Logs to try acccurve and accplot on: python3 tests/data/make_example_logs.py writes
examples/logs/ again.

gpu.log and gpu_again.log are one training run twice, with determinism off; npu.log is the same
run on another device, where something breaks at step 24."""
import math
import os
import random

here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "logs")
os.makedirs(here, exist_ok=True)
STEPS, FAULT = 60, 24


def write(name, seed, broken):
    batch, noise = random.Random(1), random.Random(seed)
    wander = 0.0
    with open(os.path.join(here, name), "w") as f:
        for i in range(1, STEPS + 1):
            loss = 2.6 + 8.2 * math.exp(-i / 14) + batch.gauss(0, 0.05)
            norm = 1.2 + 9 * math.exp(-i / 8) + abs(batch.gauss(0, 0.2))
            wander = 0.7 * wander + noise.gauss(0, 0.0006) if i > 1 else 0.0
            gap = 0.35 * (1 - math.exp(-(i - FAULT + 1) / 6)) if broken and i >= FAULT else 0.0
            f.write(f" iteration {i:8d}/ {STEPS:7d} | consumed samples: {i * 64:12d} | elapsed time per iteration (ms):"
                    f" {noise.gauss(810, 6):.1f} | learning rate: {3e-4 * min(1, i / 10):.6E} | global batch size:"
                    f"    64 | lm loss: {loss + wander + gap:.6E} | loss scale: 1.0 | grad norm:"
                    f" {norm * (1 + noise.gauss(0, 0.004)) + 6 * gap:.3f} | number of skipped iterations:   0 |"
                    f" number of nan iterations:   0 |\n")


write("gpu.log", 11, False)
write("gpu_again.log", 12, False)
write("npu.log", 13, True)
