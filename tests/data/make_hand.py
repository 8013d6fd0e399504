#!/usr/bin/env python3
"""tests/data/checkpoints/hand.tar, hand.zip: a recording by hand, of folders of steps and passes, with
a manifest in the zip, in Python alone; and the corpus of the fuzz target. The arrays are 1, 2, 3 ..."""
import io
import os
import struct
import tarfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))


def npy(first):
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }"
    head += " " * (63 - (10 + len(head)) % 64) + "\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode() + \
        struct.pack("<3f", first, first + 1, first + 2)


files = {
    "rec/iter_1/fwd/0-fc1-in.npy": npy(1),
    "rec/iter_1/fwd/0-fc1-out.npy": npy(4),
    "rec/iter_1/bwd/0-fc1-grad_output.npy": npy(7),
}
for name in os.path.join(HERE, "checkpoints/hand"), os.path.join(HERE, "../fuzz/corpus/hand/hand"):
    os.makedirs(os.path.dirname(name), exist_ok=True)
    with tarfile.open(name + ".tar", "w", format=tarfile.PAX_FORMAT) as t:
        t.copybufsize = 512
        for n, b in files.items():
            i = tarfile.TarInfo(n)
            i.size = len(b)
            t.addfile(i, io.BytesIO(b))
    data = open(name + ".tar", "rb").read()
    end = len(data.rstrip(b"\0")) + 511 & -512
    with open(name + ".tar", "wb") as f:
        f.write(data[:end] + bytes(1024))
    with zipfile.ZipFile(name + ".zip", "w", zipfile.ZIP_DEFLATED) as z:
        for n, b in files.items():
            z.writestr(zipfile.ZipInfo(n), b, zipfile.ZIP_DEFLATED)
        z.writestr(zipfile.ZipInfo("rec/manifest.csv"),
                   "file,op,io\niter_1/fwd/0-fc1-in.npy,fc1,in\niter_1/fwd/0-fc1-out.npy,fc1,out\n"
                   "iter_1/bwd/0-fc1-grad_output.npy,fc1,\n")
