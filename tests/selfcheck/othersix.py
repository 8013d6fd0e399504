#!/usr/bin/env python3
"""Recordings of small trainers on two to four ranks, right ones and ones with bugs between ranks of six kinds that
public trackers report, by one who had not read how runs are judged.

Usage: othersix.py OUT CASE... [--task tensor|statistics] [--seed N]     needs python3-torch (gloo)
       othersix.py --faults
       othersix.py --check [PROGRAM|BUG...] [--seed N]

A case is a program of PROGRAMS or PROGRAM-BUG. The programs and the FAULTS, with a report of each, are in
othersix_split.py (tensor, sequence and context parallel), othersix_copies.py (data parallel), othersix_stages.py
(pipelines with tied weights) and othersix_experts.py (experts and routers). --check asserts that each program has
the weights of one process with the whole batch and model, and that each bug moves one of them.
"""

import othersix_copies
import othersix_experts
import othersix_split
import othersix_stages
import scripts_frame

if __name__ == "__main__":
    scripts_frame.main(othersix_split, othersix_copies, othersix_stages, othersix_experts)
