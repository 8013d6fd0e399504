#!/bin/sh
# torch 2.15.0: workers of a DataLoader seed numpy's global generator by torch's: np.random.seed in the program changes nothing of
# what they draw, and torch.manual_seed does; without workers it is the other way round. A run with other num_workers augments
# otherwise, and a port that fixed numpy's seed alone draws anew each time.
# Seen on 2026-11-29:
#   workers 2: numpy's seed matters False, torch's True; workers 0: True, False
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/v"
"$tmp/v/bin/pip" install -q torch==2.15.0 numpy==2.4.6
cd "$tmp"
cat >see.py <<'END'
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Noise(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        return np.random.rand()


def drawn(numpy_seed, torch_seed, workers):
    np.random.seed(numpy_seed)
    torch.manual_seed(torch_seed)
    return [float(v) for v in DataLoader(Noise(), num_workers=workers)]


for workers in (2, 0):
    first = drawn(0, 0, workers)
    by = drawn(1, 0, workers) != first, drawn(0, 1, workers) != first
    print("workers %d: numpy's seed matters %s, torch's %s" % (workers, *by))
    assert drawn(0, 0, workers) == first and by == ((False, True) if workers else (True, False))
END
"$tmp/v/bin/python" -W ignore see.py
