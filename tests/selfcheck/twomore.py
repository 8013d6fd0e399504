#!/usr/bin/env python3
"""Recordings of two-rank training scripts, right ones and ones with the kinds of bug that public trackers report: a
norm's gradient not summed over tensor parallel ranks, a loss scaled wrongly under context parallelism, replicas that
drift by a step of the optimizer, a router that differs by rank, an embedding tied across stages and not reduced,
expert gradients averaged over the wrong group; by one who had not read how runs are judged.

Usage: twomore.py OUT CASE... [--task tensor|statistics] [--seed N]     needs python3-torch (gloo)
       twomore.py --faults
       twomore.py --check [PROGRAM|BUG...] [--seed N]

A case is a program of PROGRAMS or PROGRAM-BUG; its recording is OUT/CASE. The programs and the FAULTS, with a report of
each, are in twomore_split.py (split layers), twomore_long.py (a split sequence, stages) and twomore_copies.py
(replicas, experts). --check asserts that each program has the weights of one process with the whole batch and model,
and that each bug moves one of them on some rank by more than 1e-3 of its norm.
"""
import scripts_frame
import twomore_copies
import twomore_long
import twomore_split

if __name__ == "__main__":
    scripts_frame.main(twomore_split, twomore_long, twomore_copies)
