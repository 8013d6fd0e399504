#!/usr/bin/python3
"""What tests/accdump-read.bats expects of msprobe dumps: a line a tensor or argument, read from
the JSON by Python, in the spelling of `accfmt --tsv`; and the first stack frame of each op
call. Writes rows/NAME.tsv and rows/NAME.frames.

    /usr/bin/python3 tests/data/make_rows.py
"""
import glob
import json
import os

HERE = os.path.dirname(os.path.abspath(__file__))
DUMPS = {
    "leaves": "leaves", "debug": "msprobe_debug", "L0": "msprobe_L0", "old": "msprobe_old",
    "procs": "msprobe_procs/device", "mindspore": "mindspore/device",
}
MEMBERS = [("input_args", "input", "in"), ("input", "input", "in"), ("input_kwargs", "input", "kw"),
           ("parameters", "parameters", "param"), ("output", "output", "out")]


def leaves(x, path, in_grad=False):
    """(path, leaf) of everything beneath x, as msprobe names its rows."""
    if isinstance(x, list):
        for i, y in enumerate(x):
            yield from leaves(y, path if in_grad else path + [str(i)], in_grad)
    elif isinstance(x, dict) and not isinstance(x.get("type"), str):
        for k, y in x.items():
            yield from leaves(y, path + [k], in_grad)
    else:
        yield path, x


def text(v):
    """As accfmt --tsv prints a value."""
    if v is None:
        return ""
    if isinstance(v, bool):
        return str(v).lower()
    if isinstance(v, list):
        return json.dumps(v)
    v = repr(v) if isinstance(v, float) else str(v)
    for a, b in ("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r"):
        v = v.replace(a, b)
    return v


def frames_of(stacks):
    """Op call -> frames, from either form of stack.json."""
    out = {}
    for k, v in stacks.items():
        if v and isinstance(v[0], list):
            out.update((key, v[1]) for key in v[0])
        else:
            out[k] = v
    return out


def load(folder, name):
    path = os.path.join(folder, name)
    return json.load(open(path)) if os.path.exists(path) else {}


def row(key, io, name, pos, leaf, scope, origin):
    if leaf is None:
        leaf = {"type": "None"}
    elif not isinstance(leaf, dict):
        leaf = {"type": type(leaf).__name__, "value": leaf}
    name = os.path.splitext(leaf["data_name"])[0] if "data_name" in leaf else name
    value = leaf.get("value", leaf.get("format", leaf.get("group_ranks")))
    cells = ["tensor" if "shape" in leaf else "arg", key, io, pos, name, leaf["type"],
             leaf.get("dtype"), leaf.get("shape"), value, leaf.get("requires_grad"),
             leaf.get("Max"), leaf.get("Min"), leaf.get("Mean"), leaf.get("Norm"),
             leaf.get("data_name"), scope, origin]
    return "\t".join(map(text, cells)) + "\n"


def rows(path, stacks):
    folder = os.path.dirname(path)
    frames, parents = frames_of(load(folder, "stack.json")), load(folder, "construct.json")
    for key, op in json.load(open(path))["data"].items():
        scope = parents.get(key)
        scope = scope[0] if isinstance(scope, list) else scope
        origin, forward = None, key.replace(".backward", ".forward")
        if key not in frames and forward in frames:
            origin = forward
        if key in frames or origin:
            stacks.write(f"{key}\t{text(frames[origin or key][0])}\n")
        if ".parameters_grad" in key:
            parts = [("grad", key, leaves(op, [], True))]
        elif key.endswith(".debug"):
            parts = [("out", key, leaves(op, []))]
        else:
            parts = [(io, f"{key}.{infix}", leaves(op[m], []))
                     for m, infix, io in MEMBERS if m in op]
        for io, base, found in parts:
            for pos, leaf in found:
                yield row(key, io, ".".join([base] + pos), ".".join(pos), leaf, scope, origin)


def main():
    for name, folder in DUMPS.items():
        found = glob.glob(f"{HERE}/dumps/{folder}/**/d*.json", recursive=True)
        with open(f"{HERE}/rows/{name}.tsv", "w") as f, \
                open(f"{HERE}/rows/{name}.frames", "w") as stacks:
            for path in sorted(found):
                f.writelines(rows(path, stacks))


if __name__ == "__main__":
    main()
