#!/usr/bin/python3
"""Makes tests/data/io: numbers as Python reads them, .npy files as numpy writes and reads them,
gzip'd texts. For developers only: neither building nor testing runs it. Needs python3-numpy."""
import gzip
import os
import random
import struct
import warnings
from fractions import Fraction

import numpy as np

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "io")


def bits(x):
    return struct.pack(">d", x).hex()


def literals(rng):
    """Spellings of doubles that are easy to round wrongly."""
    yield from ("0", "-0", "-0.0", "1", "-1.5", "1e22", "1e23", "123456789012345678", "9007199254740993.0",
                "9223372036854775807", "9223372036854775808", "-9223372036854775808",
                "-9223372036854775809", "18446744073709551615", "18446744073709551616",
                "2.2250738585072011e-308", "5e-324", "2.4e-324", "2.5e-324", "1e-400", "1e400",
                "1.7976931348623158e308", "1.7976931348623159e308", "0." + "0" * 40 + "1", "1" + "0" * 60,
                "0.1e1", "1E5", "1e+05", "7.2057594037927933e16", "6.631236846766476e-316",
                "3.725290298461914e-09", "0.000000000000000000000000001", "1e-27", "9999999999999999999e-27")
    for _ in range(30):
        yield repr(struct.unpack("f", struct.pack("I", rng.getrandbits(32) & 0xbfffffff))[0])
        yield repr(rng.gauss(0, 1) * 10.0 ** rng.randint(-40, 20))
        yield "%d.%de%d" % (rng.randint(0, 9), rng.getrandbits(rng.randint(1, 64)), rng.randint(-30, 30))
    for _ in range(40):
        # 54 significant bits, the last one set: a tie between two doubles, and its neighbours.
        sh = rng.randint(1, 4)
        tie = (rng.getrandbits(54) | 1 << 53 | 1) * 5 ** sh
        s = str(tie + rng.choice((-1, 0, 0, 1)))
        yield s[:-sh] + "." + s[-sh:]


def near_ties(rng):
    """19 digits, so little above or below a tie that 62 bits of a quotient cannot tell."""
    n = 0
    while n < 40:
        m, k = rng.getrandbits(52) | 1 << 52, rng.randint(1, 27)
        scale = Fraction(2) ** rng.randint(-80, 10)
        exact = Fraction(2 * m + 1) * scale * 10 ** k
        w = int(exact) + (1 if m % 2 == 0 else 0)
        if 10 ** 18 <= w < 10 ** 19 and abs(w - exact) / (scale * 10 ** k) < Fraction(1, 4096):
            n += 1
            yield "%de-%d" % (w, k)


def numbers():
    rng = random.Random(20)
    with open(os.path.join(OUT, "numbers.tsv"), "w") as f:
        for s in (*literals(rng), *near_ties(rng)):
            f.write("%s\t%s\n" % (s, bits(float(s))))


def raw_npy(text, version=(1, 0), align=64):
    """A header of somebody else's making."""
    size = 10 if version == (1, 0) else 12
    fill = -(size + len(text) + 1) % align
    text = text + " " * fill + "\n"
    return (b"\x93NUMPY" + bytes(version) +
            struct.pack("<H" if version == (1, 0) else "<I", len(text)) + text.encode("latin-1"))


def npy():
    nest = np.dtype([("a", "<f4"), ("b]", "<i2", (2,))])
    made = {
        "c_f4": np.arange(6, dtype="<f4").reshape(2, 3),
        "fortran_i2": np.asfortranarray(np.arange(24, dtype="<i2").reshape(2, 3, 4)),
        "fortran_row": np.asfortranarray(np.arange(3, dtype="<i2").reshape(1, 3, 1)),
        "big_f8": np.arange(3, dtype=">f8"),
        "big_u1": np.arange(3, dtype=">u1"),
        "scalar_i8": np.array(7, dtype="<i8"),
        "zero_f2": np.zeros((3, 0, 2), dtype="<f2"),
        "fortran_zero": np.zeros((3, 0, 2), dtype="<f2", order="F"),
        "bool": np.array([True, False]),
        "c8": np.zeros(2, dtype="<c8"),
        "c16": np.zeros(1, dtype="<c16"),
        "u8": np.zeros((1, 1, 1, 2), dtype="<u8"),
        "longdouble": np.zeros(1, dtype=np.longdouble),
        "object": np.array([None, 1], dtype=object),
        "struct": np.zeros(2, dtype=nest),
        "bytes": np.array([b"ab"]),
        "text": np.array(["ab"]),
        "date": np.array(["2024-01-01"], dtype="M8[D]"),
        "span": np.array([1], dtype="m8[s]"),
        "void": np.zeros(2, dtype="V3"),
    }
    files = {}
    for name, a in made.items():
        path = os.path.join(OUT, name + ".npy")
        with open(path, "wb") as f:
            np.save(f, a)
    f4 = b"\0" * 24
    files["python2"] = raw_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3L), }", align=16) + f4
    files["spaced"] = raw_npy('{ "shape" :(2 ,3,) ,"fortran_order":True,"descr":"<f4"}') + f4
    files["version2"] = raw_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", (2, 0)) + f4
    files["version3"] = raw_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (6,)}", (3, 0)) + f4
    files["tight"] = raw_npy("{'descr':'<f4','fortran_order':False,'shape':(6,)}", align=1) + f4
    for name, data in files.items():
        with open(os.path.join(OUT, name + ".npy"), "wb") as f:
            f.write(data)
    with open(os.path.join(OUT, "npy.tsv"), "w") as out:
        for name in sorted(list(made) + list(files)):
            path = os.path.join(OUT, name + ".npy")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                a = np.load(path, allow_pickle=name == "object")
            t = a.dtype
            known = t.names is None and t.kind in "fiubc" and t != np.longdouble
            own = {"f": "f", "i": "i", "u": "u", "c": "c"}.get(t.kind, "")
            dtype = "bool" if t.kind == "b" else own + str(t.itemsize * 8)
            data = os.path.getsize(path) - a.nbytes if known else 0
            # Strides only where they matter: more than one element per dimension.
            strided = known and not a.flags.c_contiguous and a.size > 0
            out.write("\t".join((
                name, dtype if known else "-", "big" if t.byteorder == ">" else "little",
                str(data), str(a.nbytes if known else 0), ",".join(map(str, a.shape)) or "-",
                ",".join(str(s // t.itemsize) for s in a.strides) if strided else "-")) + "\n")


def plain(n):
    return bytes(97 + (i * 7 + i // 1000) % 26 for i in range(n))


def gz():
    def pack(b):
        return gzip.compress(b, 9, mtime=0)
    files = {
        "one.gz": pack(plain(300000)),
        "many.gz": pack(b"") + pack(b"abc") + pack(b"") + pack(b"def\n") + b"\0" * 512,
        "garbage.gz": pack(b"abc") + b"\0\0def",
        "badsum.gz": pack(b"abc")[:-8] + b"\1\2\3\4" + pack(b"abc")[-4:],
    }
    for name, data in files.items():
        with open(os.path.join(OUT, name), "wb") as f:
            f.write(data)


os.makedirs(OUT, exist_ok=True)
numbers()
npy()
gz()
