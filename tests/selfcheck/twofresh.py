#!/usr/bin/env python3
"""Recordings of two-rank training scripts with the six kinds of bug between ranks that public trackers report, each
rebuilt as it is reported, by one who had not read how runs are judged.

Usage: twofresh.py OUT CASE... [--task tensor|statistics] [--seed N]     needs python3-torch (gloo)
       twofresh.py --faults
       twofresh.py --check [PROGRAM|BUG...] [--seed N]

A case is a program of PROGRAMS or PROGRAM-BUG; its recording is OUT/CASE, with a step for each of the optimizer. The
programs and the FAULTS, with a report of each, are in twofresh_split.py (tensor parallel), twofresh_context.py
(context parallel) and twofresh_parts.py (replicas, experts, a pipeline). --check asserts that each program has the
weights and last gradients of one process with the whole batch and model, and that each bug moves one of them by more
than 1e-3 of its norm.
"""
import scripts_frame
import twofresh_context
import twofresh_parts
import twofresh_split

if __name__ == "__main__":
    scripts_frame.main(twofresh_split, twofresh_context, twofresh_parts)
