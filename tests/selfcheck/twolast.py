#!/usr/bin/env python3
"""Recordings of two ranks that train small networks, right ones and ones with the bugs of six kinds that public
trackers report, by one who had not read how runs are judged.

Usage: twolast.py OUT CASE... [--task tensor|statistics] [--seed N]     needs python3-torch (gloo)
       twolast.py --faults
       twolast.py --check [PROGRAM|BUG...] [--seed N]

A case is a program of PROGRAMS or PROGRAM-BUG; its recording is OUT/CASE. The programs and the FAULTS, with a report
of each, are in twolast_split.py (a sequence in two parts), twolast_stages.py (a pipeline) and twolast_copies.py
(replicas, with experts or without). What --check asserts is said in scripts_frame.py.
"""
import scripts_frame
import twolast_copies
import twolast_split
import twolast_stages

if __name__ == "__main__":
    scripts_frame.main(twolast_split, twolast_stages, twolast_copies)
