#!/usr/bin/env python3
"""Recordings of other programs on two to four ranks than those of scripts.py, in plain PyTorch with
accrecord(7): diffusion, speech, recommenders, distillation, adversaries, values of actions, experts, a state
space model, a pipeline, adapters, optimizers that are sharded. Right ones, and ones with bugs between ranks
that public trackers report, by one who had not read how runs are judged.

Usage: programs.py OUT CASE... [--task tensor|statistics] [--seed N]     needs python3-torch (gloo)
       programs.py --faults
       programs.py --check [PROGRAM|BUG...] [--seed N]

A case is a program of PROGRAMS or PROGRAM-BUG; its recording is OUT/CASE. The programs and the FAULTS, with a
report of each, are in programs_data.py (data parallel), programs_tensor.py (tensor and sequence parallel) and
programs_parts.py (experts, stages, parts of a sequence or image) and programs_more.py (the rest). --check
does what that of scripts.py does; of vit, whose ranks draw their own dropout, and local, where each has its
own batch norms, it asserts that all replicas end alike.
"""
import programs_data
import programs_more
import programs_parts
import programs_tensor
import scripts_frame

if __name__ == "__main__":
    scripts_frame.main(programs_data, programs_parts, programs_tensor, programs_more)
