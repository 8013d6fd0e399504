#!/usr/bin/env python3
"""Recordings of two and three gloo ranks that train small networks, right ones and ones with a fault between ranks:
no rule was written, or changed, by any of them. What rules over ranks are worth is measured by these (without.py).

Usage: worth.py OUT CASE... [--task tensor|statistics] [--seed N]     needs PyTorch (gloo, on the CPU)
       worth.py --faults
       worth.py --check [PROGRAM|FAULT...] [--seed N]

A case is a program of PROGRAMS or PROGRAM-FAULT; its recording is OUT/CASE. The programs and the FAULTS are in
worth_data.py (data of their own) and worth_parts.py (parts of a network). A fault is at what its row of FAULTS says and
at the lines that its name marks there. What --check asserts is said in scripts_frame.py.
"""
import re
import scripts_frame
import worth_data
import worth_parts


def places(module):
    """Of each fault the lines that are marked, as a report names them."""
    marked = {}
    with open(module.__file__, encoding="utf-8") as f:
        for n, line in enumerate(f, 1):
            for name in (re.search(r"# in ([\w ]+)$", line) or ["", ""])[1].split():
                marked.setdefault(name, []).append(str(n))
    name = module.__name__.replace(".", r"\.")
    return {fault: rf"{name}\.py.({'|'.join(lines)})\b" for fault, lines in marked.items()}


for part in (worth_data, worth_parts):
    where = places(part)
    assert set(where) <= set(part.FAULTS), set(where) - set(part.FAULTS)
    part.FAULTS.update({k: (case, f"{op}|{where[k]}" if k in where else op, ranks)
                        for k, (case, op, ranks) in part.FAULTS.items()})

if __name__ == "__main__":
    scripts_frame.main(worth_data, worth_parts)
