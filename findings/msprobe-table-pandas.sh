#!/bin/sh
# mindstudio-probe 26.2.0: the table of its compare depends on the pandas that pip happened to install, which is not pinned. Of an
# argument that is None, data type and shape are the text None with pandas 2 and N/A with pandas 3 (whose strings take the text for a
# missing value). Two tables of the same dumps, made on two machines, differ in every such row.
# Seen on 2026-11-29 with torch 2.15.0:
#   pandas 2.2.3: ['None', 'None', 'None', 'None']
#   pandas 3.1.1: ['N/A', 'N/A', 'N/A', 'N/A']
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/v"
"$tmp/v/bin/pip" install -q mindstudio-probe==26.2.0 torch==2.15.0 pandas==3.1.1
"$tmp/v/bin/pip" install -q --target "$tmp/two" pandas==2.2.3
cat >"$tmp/t.py" <<'END'
import csv
import glob
import json
import os
import sys
import pandas
from msprobe.pytorch.compare.pt_compare import pt_compare
tmp, want = os.path.join(sys.argv[1], pandas.__version__), sys.argv[2]
tensor = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": 1.0, "Min": -1.0, "Mean": 0.0, "Norm": 1.5, "requires_grad": False}
path = {}
for side in ("npu", "bench"):
    os.makedirs(os.path.join(tmp, side))
    for name, what in (("dump", {"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None,
                                 "data": {"Torch.relu.0.forward": {"input_args": [tensor, None], "input_kwargs": {}, "output": [tensor]}}}),
                       ("stack", {}), ("construct", {})):
        with open(os.path.join(tmp, side, name + ".json"), "w") as f:
            json.dump(what, f)
    path[side + "_path"] = os.path.join(tmp, side, "dump.json")
out = os.path.join(tmp, "out")
os.makedirs(out)
pt_compare(dict(path, stack_path=os.path.join(tmp, "npu", "stack.json"), is_print_compare_log=False), out, xlsx=False)
with open(glob.glob(out + "/*.csv")[0], encoding="utf-8-sig") as f:
    row = [r for r in csv.DictReader(f) if r["NPU Name"] == "Torch.relu.0.forward.input.1"][0]
got = [row[k] for k in ("NPU Dtype", "Bench Dtype", "NPU Tensor Shape", "Bench Tensor Shape")]
print("pandas %s: %s" % (pandas.__version__, got))
assert got == [want] * 4
END
said=$(PYTHONPATH=$tmp/two "$tmp/v/bin/python" "$tmp/t.py" "$tmp" None 2>/dev/null)
echo "$said" | tail -n 1
said=$("$tmp/v/bin/python" "$tmp/t.py" "$tmp" N/A 2>/dev/null)
echo "$said" | tail -n 1
