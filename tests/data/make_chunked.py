#!/usr/bin/env python3
"""Makes tests/data/weights/chunked.msgpack and whole.msgpack: two arrays as flax 0.12.8 writes them, in chunks of 100 bytes
where it would take 1 GiB, and whole."""
import os

import flax.serialization as serialization
import numpy as np

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "weights")
r = np.random.default_rng(3)
tree = {"params": {"Dense_0": {"kernel": r.standard_normal((12, 7)).astype(np.float32),
                               "bias": r.standard_normal(7).astype(np.float32)}}}
for name, most in (("whole", 2**30), ("chunked", 100)):
    serialization.MAX_CHUNK_SIZE = most
    with open(os.path.join(OUT, name + ".msgpack"), "wb") as f:
        f.write(serialization.msgpack_serialize(tree))
