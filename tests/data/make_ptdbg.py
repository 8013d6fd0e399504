#!/usr/bin/python3
"""Dumps of ptdbg_ascend that no network gives, dumps/ptdbg_forms and dumps/ptdbg_sums, and what
tests/dump-ptdbg.bats and tests/dump-files.bats expect: rows/NAME.tsv, read from the JSON by
Python; rows/NAME.npy.tsv, rows/npy.tsv, what numpy says of the files.

    /usr/bin/python3 tests/data/make_ptdbg.py
"""
import glob
import json
import os
import re

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
DUMPS = HERE + "/dumps/"
ROWS = HERE + "/rows/"
NAN, INF = float("nan"), float("inf")

FRAME = ["/w/a, line 3, in b.py", "41", "step", "y = f(x, 'in', \"line\")"]
NO_SOURCE = ["<string>", "1", "<module>", None]
FORMS = [
    ["Tensor_eq_0_forward_input.0", 0, [], "torch.bool", [2], [[], [], [], "Nan"]],
    ["Tensor_eq_0_forward_input.1", 0, [], "<class 'int'>", "[]", [2, 2, 2, 2]],
    ["Tensor_eq_0_forward_output", 0, [], "torch.bool", [2], [True, False, [], "Nan"]],
    ["Tensor_eq_0_forward_stack_info", [FRAME, NO_SOURCE]],
    ["Aten_convolution_backward.default_12_forward_input.0", 0, [], "torch.float16", [2, 1],
     [INF, -INF, NAN, NAN]],
    ["Aten_convolution_backward.default_12_forward_output.1.0", 0, [], "torch.bfloat16", [3],
     [1.5, -2.0, 0.25, 3]],
    ["VF_lstm_99_forward_input.1.0", 0, [], "torch.float64", [0, 4], [[], [], [], "Nan"]],
    ["VF_lstm_99_forward_input.2", 0, [], "<class 'float'>", "[]", [1e-05] * 4],
    ["VF_lstm_99_forward_input.3", 0, [], "<class 'bool'>", "[]", [True] * 4],
    ["VF_lstm_99_forward_input.4", 0, [], "<class 'float'>", "[]", [NAN] * 4],
    ["Tensor___iadd___7_forward_input.0", 0, [], "torch.float32", [], [2.5, 2.5, 2.5, "Nan"]],
    ["Module_Linear_3_forward_output", 0, [], "torch.int64", [1], [7.0, 7.0, 7.0, "Nan"]],
    ["My_Module_0_forward_input", 0, [], "torch.complex64", [2], [1.0, 0.5, 0.75, 1.25]],
    ["forward_input_net_1_forward_input.0", 0, [], "torch.float32", [1], [1.0, 1.0, 1.0]],
    ["Torch_input_output_0_forward_output.0", 0, [], "torch.float32", [1], []],
    # One step later the same op is called again, with the same key.
    ["Distributed_all_reduce_0_forward_input.0", 0, [], "torch.float32", [1], [1.0] * 4],
    ["Distributed_all_reduce_0_forward_output.0", 0, [], "torch.float32", [1], [2.0] * 4],
    ["Distributed_all_reduce_0_forward_input.0", 0, [], "torch.float32", [1], [3.0] * 4],
    ["Distributed_all_reduce_0_forward_stack_info", [["/w/c.py", "9", "sync", "reduce()"]]],
    ["Distributed_all_reduce_0_forward_input.0", 0, [], "torch.float32", [1], [4.0] * 4],
    ["Tensor_eq_0_backward_input.0", 0, [], "torch.float32", [2], [0.5, 0.25, 0.375, 0.5]],
    ["Tensor_eq_0_backward_output.0", 0, [], "torch.float32", [2], [0.5, 0.25, 0.375, 0.5]],
    ["no name of an argument", 0, [], "torch.float32", [1], [1.0] * 4],
    # As of April 2023: the stack first, its frames as texts.
    ["Torch_mm_0_forward_stack_info", ["FrameInfo(filename='/w/d.py', lineno=5)", ""]],
    ["Torch_mm_0_forward_input.0", 0, [], "torch.float32", [1], [1.0] * 4],
    ["Torch_mm_0_forward_stack_info", ["FrameInfo(filename='/w/d.py', lineno=6)"]],
    ["Torch_mm_0_forward_input.0", 0, [], "torch.float32", [1], [1.0] * 4],
]
ARRAYS = {  # of FORMS, what numpy holds: halves are widened, bfloat16 always
    "Tensor_eq_0_forward_input.0": np.array([True, False]),
    "Tensor_eq_0_forward_output": np.array([True, False]),
    "Aten_convolution_backward.default_12_forward_input.0": np.array([[INF], [-INF]], "f4"),
    "Aten_convolution_backward.default_12_forward_output.1.0": np.array([1.5, -2, 1.25], "f4"),
    "VF_lstm_99_forward_input.1.0": np.zeros((0, 4)),
    "Module_Linear_3_forward_output": np.array([7]),
    "My_Module_0_forward_input": np.array([1, 0.5j], "c8"),
}
# 12345678 is a decimal number here: the checksums before it are.
SUMS = [
    ["Torch_mm_0_forward_input.0", 0, "5f2a9c01", "torch.bfloat16", [8, 8], []],
    ["Torch_mm_0_forward_input.1", 0, "12345678", "torch.float32", [8, 8], []],
    ["Torch_mm_0_forward_input.2", 0, "d41d8cd98f00b204e9800998ecf8427e", "torch.int8", [1], []],
    ["Torch_mm_0_forward_input.3", 0, [], "<class 'int'>", "[]", []],
    ["Torch_mm_0_forward_output.0", 0, 305419896, "torch.float32", [8, 8], []],
    ["Torch_mm_0_forward_output.1", 0, "4000000000", "torch.float32", [8, 8], []],
    ["Torch_mm_0_forward_output.2", 0, "12345678", "torch.float32", [8, 8], []],
    ["Torch_mm_0_forward_output.3", 0, "7", "torch.float32", [8, 8], []],
    ["Torch_mm_0_forward_output.4", 0, "strange", "torch.float32", [8, 8], []],
]
SUMS_AS = [("crc32", "5f2a9c01"), ("crc32", "12345678"), ("md5", SUMS[2][2]), None,
           ("crc32", "12345678"), ("crc32", "ee6b2800"), ("crc32", "00bc614e"),
           ("crc32", "00000007"), None]


def text(v):
    """As accfmt --tsv prints a value."""
    if v is None:
        return ""
    if isinstance(v, bool):
        return str(v).lower()
    if isinstance(v, list):
        return json.dumps(v)
    if v in (INF, -INF) or v != v:
        return "nan" if v != v else "inf" if v > 0 else "-inf"
    return repr(v) if isinstance(v, float) else str(v)


def write(path, rows):
    with open(path, "w") as f:
        for r in rows:
            f.write("\t".join(map(text, r)) + "\n")


NAME = re.compile(r"(.+)([._])(\d+)[._](forward|backward)[._](input|output)(?:\.([\d.]+))?")
TYPES = ("Tensor", "Torch", "Functional", "NPU", "VF", "Aten", "Distributed", "Module")


def named(name):
    """key, op, call, pass, io, pos"""
    m = NAME.fullmatch(name)
    if not m:
        return name, name, None, None, "out", "0"
    op, sep, call, direction, io, pos = m.groups()
    first, _, rest = op.partition("_")
    if sep == "_" and first in TYPES:
        op = first + "." + rest
    key = name[:m.start(5) - 1]
    return key, op, int(call), direction, "in" if io == "input" else "out", pos or "0"


def rows(path):
    """kind, name, key, op, call, pass, io, pos, type, value, dtype.raw, shape, max, min, mean,
    norm of each line that is no stack"""
    for line in open(path):
        if not line.strip():
            continue
        line = json.loads(line)
        if line[0].endswith("stack_info"):
            continue
        name, _, _, dtype, shape, stats = line
        if dtype.startswith("<class"):
            yield ["arg", name, *named(name), dtype[8:-2], stats[0] if stats else None, None, None,
                   None, None, None, None]
            continue
        stats = [x if isinstance(x, (int, float)) else None for x in stats]
        yield ["tensor", name, *named(name), None, None, dtype, shape, *(stats + [None] * 4)[:4]]


def npy(path):
    """dtype, shape, stride in elements where not row-major, order, off, len"""
    with open(path, "rb") as f:
        np.lib.format.read_magic(f)
        f.seek(8)
        n = 2 if path.endswith(("version2.npy", "version3.npy")) else 1
        off = (10 if n == 1 else 12) + int.from_bytes(f.read(2 * n), "little")
    a = np.load(path)
    kind = "bool" if a.dtype.kind == "b" else f"{a.dtype.kind}{a.itemsize * 8}"
    stride = [s // a.itemsize for s in a.strides]
    return [kind, list(a.shape), stride if a.size and not a.flags.c_contiguous else None,
            "big" if a.dtype.byteorder == ">" else None, off, a.nbytes]


def main():
    forms = DUMPS + "ptdbg_forms/ptdbg_dump_v3.2/rank104711"
    os.makedirs(forms + "/list_dump", exist_ok=True)
    with open(forms + "/list_dump.pkl", "w") as f:
        for i, line in enumerate(FORMS):
            f.write(json.dumps(line) + ("\n" if i % 5 else "\n\n"))
    for line in FORMS:
        a = ARRAYS.get(line[0], np.zeros(line[4], "f4") if len(line) > 2 and line[4] != "[]" else None)
        if a is not None:
            np.save(f"{forms}/list_dump/{line[0]}.npy", a)
    os.makedirs(DUMPS + "ptdbg_sums", exist_ok=True)
    with open(DUMPS + "ptdbg_sums/dump.pkl", "w") as f:
        for line in SUMS:
            f.write(json.dumps(line) + "\n")
    os.makedirs(ROWS, exist_ok=True)
    write(ROWS + "ptdbg_sums.tsv", ([line[0]] + [s[1] if s and s[0] == k else None for k in
                                    ("crc32", "md5")] for line, s in zip(SUMS, SUMS_AS)))
    for name in "v1", "v4/device", "v6", "md5/device", "summary", "overflow", "forms":
        out = ROWS + "ptdbg_" + name.split("/")[0]
        pkl, = glob.glob(f"{DUMPS}ptdbg_{name}/**/*.pkl", recursive=True)
        write(out + ".tsv", rows(pkl))
        files = glob.glob(f"{DUMPS}ptdbg_{name}/**/*.npy", recursive=True)
        if files:
            by_name = {os.path.basename(f)[:-4]: f for f in files}
            lines = [json.loads(x) for x in open(pkl) if x.strip()]
            write(out + ".npy.tsv", ([x[0], os.path.relpath(by_name[x[0]], os.path.dirname(pkl)),
                                     *npy(by_name[x[0]])] for x in lines
                                    if len(x) > 2 and x[4] != "[]"))
    write(ROWS + "npy.tsv", ([os.path.basename(f)[:-4], os.path.basename(f), *npy(f)]
                             for f in sorted(glob.glob(DUMPS + "npy/*.npy"))))


main()
