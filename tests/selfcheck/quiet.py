#!/usr/bin/env python3
"""Recordings of trainers on two to four ranks that are all right, each in another of the ways in which training
is distributed, by one who had not read how runs are judged; recorded with accrecord(7).

Usage: quiet.py OUT PROGRAM... [--task tensor|statistics] [--seed N]     needs python3-torch (gloo)
       quiet.py --faults
       quiet.py --check [PROGRAM...] [--seed N]

The recording of a program is OUT/PROGRAM, with the steps that the program tells or that accrecord finds. The
programs are in quiet_a.py (DistributedDataParallel), quiet_b.py (replicas that are kept alike by hand, or part
and meet again) and quiet_c.py (parts of a model, a sequence or a space, and ranks with a part of their own to
play). --check asserts that the ranks of each end with what one process computes with the whole batch and model,
or, where ranks part by design, with all ranks' copies in turn; of drops and powersgd, that the replicas agree.
"""
import scripts_frame   # which finds accrecord
import quiet_a
import quiet_b
import quiet_c

if __name__ == "__main__":
    scripts_frame.main(quiet_a, quiet_b, quiet_c)
