#!/usr/bin/env python3
"""Recordings of trainers on two ranks, right ones and ones with the six kinds of bug that public trackers
report: a norm's gradient not summed over tensor parallel ranks, a loss scaled wrongly under context
parallelism, replicas that drift by one optimizer step, a router that differs by rank, a tied embedding that
is not reduced across stages, and gradients of experts averaged over the wrong group; by one who had not read
how runs are judged.

Usage: tworanks.py OUT CASE... [--task tensor|statistics] [--seed N]     needs python3-torch (gloo)
       tworanks.py --faults
       tworanks.py --check [PROGRAM|BUG...] [--seed N]

A case is a program of PROGRAMS or PROGRAM-BUG; its recording is OUT/CASE. The programs and the FAULTS, with a
report of each, are in tworanks_sequence.py (that split sequences), tworanks_copies.py (that have copies of
weights) and tworanks_experts.py (that have experts). --check asserts that each program has the weights and last
gradients of one process with the whole batch and model, and that each bug moves one of them on some rank by
more than 1e-3 of its norm.
"""
import scripts_frame
import tworanks_copies
import tworanks_experts
import tworanks_sequence

if __name__ == "__main__":
    scripts_frame.main(tworanks_sequence, tworanks_copies, tworanks_experts)
