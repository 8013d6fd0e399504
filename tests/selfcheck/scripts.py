#!/usr/bin/env python3
"""Recordings of programs on two to four ranks as users write them in plain PyTorch and record them with
accrecord(7), right ones and ones with bugs between ranks that public trackers report, by one who had not read
how runs are judged.

Usage: scripts.py OUT CASE... [--task tensor|statistics] [--seed N]     needs python3-torch (gloo)
       scripts.py --faults
       scripts.py --check [PROGRAM|BUG...] [--seed N]

A case is a program of PROGRAMS or PROGRAM-BUG; its recording is OUT/CASE, with a step for each of the
optimizer. The programs and the FAULTS, with a report of each, are in scripts_data.py (data parallel),
scripts_tensor.py (tensor and sequence parallel) and scripts_parts.py (pipelines, experts, rings). --check
asserts that each program has the weights and last gradients of one process with the whole batch and model,
and that each bug moves one of them on some rank by more than 1e-3 of its norm.
"""
import scripts_data
import scripts_frame
import scripts_parts
import scripts_tensor

if __name__ == "__main__":
    scripts_frame.main(scripts_data, scripts_tensor, scripts_parts)
