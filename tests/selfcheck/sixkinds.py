#!/usr/bin/env python3
"""Recordings of small trainers on two or four ranks, right ones and ones with six kinds of bugs between ranks that
public trackers report, by one who had not read how runs are judged: (1) gradients of whole weights not summed over
tensor or sequence parallel ranks, (2) losses scaled wrongly, (3) replicas that drift, (4) routers that differ by
rank, (5) tables tied across stages, (6) gradients of experts.

Usage: sixkinds.py OUT CASE... [--task tensor|statistics] [--seed N]     needs python3-torch (gloo)
       sixkinds.py --faults
       sixkinds.py --check [PROGRAM|BUG...] [--seed N]

A case is a program of PROGRAMS or PROGRAM-BUG; its recording is OUT/CASE, with a step for each of the optimizer;
masters and pipedp, which step by hand, have all in one. The programs and the FAULTS, with a report and the kind of
each, are in sixkinds_split.py (tensor and sequence parallel), sixkinds_losses.py, sixkinds_states.py (data
parallel), sixkinds_stages.py (pipelines) and sixkinds_experts.py.
--check asserts that each program has the weights of one process with the whole batch and model, and that each bug
moves a weight or gradient on some rank by more than 1e-3 of its norm.
"""
import scripts_frame
import sixkinds_experts
import sixkinds_losses
import sixkinds_split
import sixkinds_stages
import sixkinds_states

if __name__ == "__main__":
    scripts_frame.main(sixkinds_split, sixkinds_losses, sixkinds_states, sixkinds_stages, sixkinds_experts)
