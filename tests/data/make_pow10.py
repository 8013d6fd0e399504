#!/usr/bin/env python3
"""make_pow10.py >lib/base/pow10.h: powers of ten to 128 bits, in exact arithmetic.

Of 10^k = f 2^e with 2^127 <= f < 2^128: f, rounded up, for -292 <= k <= 324 (what lib/base/shortest.c asks
for of a double)."""
FIRST, LAST = -292, 324


def significand(k):
    if k >= 0:
        n = 10 ** k
        shift = n.bit_length() - 128
        return n << -shift if shift <= 0 else -(-n >> shift)
    n = 10 ** -k
    # f = ceil(2^s / n) in 2^127 .. 2^128; of no negative power exact
    s = n.bit_length() + 127
    return -(-(1 << s) // n)


print("/* pow10.h - powers of ten to 128 bits, rounded up; made by tests/data/make_pow10.py */")
print(f"enum {{ POW10_FIRST = {FIRST}, POW10_LAST = {LAST} }};")
print("static const uint64_t pow10_128[][2] = {")
for k in range(FIRST, LAST + 1):
    f = significand(k)
    assert 1 << 127 <= f < 1 << 128
    print(f"\t{{0x{f >> 64:016x}, 0x{f & (1 << 64) - 1:016x}}}, /* 1e{k} */")
print("};")
