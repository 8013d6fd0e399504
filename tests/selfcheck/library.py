#!/usr/bin/env python3
"""Recordings of programs on two and four ranks made of PyTorch's own parts for many ranks, recorded with
accrecord(7), right ones and ones with bugs between ranks that public trackers report, by one who had not read
how runs are judged.

Usage: library.py OUT CASE... [--task tensor|statistics] [--seed N]     needs python3-torch (gloo)
       library.py --faults
       library.py --check [PROGRAM|BUG...] [--seed N]

A case is a program of PROGRAMS or PROGRAM-BUG; its recording is OUT/CASE, with a step for each of the
optimizer. The programs and the FAULTS, with a report of each, are in library_data.py (parts of the batch),
library_split.py (layers), library_stages.py (pipelines) and library_experts.py. --check asserts that each program
has the weights and last gradients of one process with the whole batch and model, and that each bug moves one of
them on some rank by more than 1e-3 of its norm.
"""
import library_data
import library_experts
import library_split
import library_stages
import scripts_frame

if __name__ == "__main__":
    scripts_frame.main(library_data, library_split, library_stages, library_experts)
