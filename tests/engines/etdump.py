#!/usr/bin/env python3
"""ETDumps that ExecuTorch 1.5.1's own runtime writes: etdump.py FOLDER {right,wrong} ... runs the CNN of models.py, right or
with another eps in one batch norm, with event tracing; FOLDER/SIDE/etdump.etdp, debug_output.bin, and inspector.json: of
each output of an instruction, as ExecuTorch's Inspector reads it, [kernel, instruction, dtype, shape, sum, L2 norm]."""
import json
import os
import sys

import executorch.exir as exir
import torch
from executorch.devtools import Inspector
from executorch.runtime import Runtime, Verification

import models


def make(folder, wrong):
    os.makedirs(folder, exist_ok=True)
    m, x = models.make("cnn", 0)
    if wrong:
        print(models.break_it(m, "cnn", "eps"))
    program = exir.to_edge(torch.export.export(m, (x,))).to_executorch()
    method = Runtime.get().load_program(program.buffer, verification=Verification.Minimal, enable_etdump=True, debug_buffer_size=40000)
    y = method.load_method("forward").execute([x])
    path, buffer = folder + "/etdump.etdp", folder + "/debug_output.bin"
    method.write_etdump_result_to_file(path, buffer)
    with torch.no_grad():
        print("off from torch by", float((y[0] - m(x)).abs().max()))
    rows = []
    for block in Inspector(etdump_path=path, debug_buffer_path=buffer).event_blocks:
        for e in block.events:
            for t in (e.debug_data or []) if e.name != "OPERATOR_CALL" else []:
                v = t.double()
                rows.append([e.name, e._instruction_id, str(t.dtype), list(t.shape), float(v.sum()), float(v.norm())])
    with open(folder + "/inspector.json", "w") as f:
        json.dump(rows, f)


for side in sys.argv[2:]:
    make(sys.argv[1] + "/" + side, side == "wrong")
