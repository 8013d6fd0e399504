#!/usr/bin/env python3
"""Recordings of programs on two to four ranks that are all right, though what their ranks have in common is
less, or other, than one would ask of replicas at first sight; recorded with accrecord(7).

Usage: calm.py OUT PROGRAM... [--task tensor|statistics] [--seed N]     needs python3-torch (gloo)
       calm.py --faults
       calm.py --check [PROGRAM...] [--seed N]

The recording of a program is OUT/PROGRAM, with the steps that the program tells or that accrecord finds,
which of a rank without an optimizer of torch are one. The programs are in calm_data.py (replicas),
calm_roles.py (ranks with tasks of their own) and calm_split.py (parts of a model). --check asserts that the
ranks of each end with what one process computes: with the whole batch and model, or, where ranks part by
design, with all ranks' copies in turn; and what else a program says in TOO that it is right by.
"""
import scripts_frame   # which finds accrecord
import calm_data
import calm_roles
import calm_split

if __name__ == "__main__":
    scripts_frame.main(calm_data, calm_roles, calm_split)
