#!/usr/bin/env python3
"""Recordings of trainers, right ones and ones with bugs between ranks that trackers report, by one who had not read
how runs are judged.

Usage: sixagain.py OUT CASE... [--task tensor|statistics] [--seed N]     needs python3-torch (gloo)
       sixagain.py --faults
       sixagain.py --check [PROGRAM|BUG...] [--seed N]

A case is a program of PROGRAMS or PROGRAM-BUG. The programs and the FAULTS, with a report of each, are in
sixagain_data.py and sixagain_states.py (replicas), sixagain_split.py and sixagain_shift.py (split layers and
sequences), sixagain_stages.py (pipelines with tied embeddings) and sixagain_experts.py (mixtures of experts).
"""
import scripts_frame
import sixagain_data
import sixagain_experts
import sixagain_shift
import sixagain_split
import sixagain_stages
import sixagain_states

if __name__ == "__main__":
    scripts_frame.main(sixagain_data, sixagain_states, sixagain_split, sixagain_shift, sixagain_stages,
                       sixagain_experts)
