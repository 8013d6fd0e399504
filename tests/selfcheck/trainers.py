#!/usr/bin/env python3
"""Recordings of small trainers on two or four ranks, as somebody writes who trains such a model over ranks, right
ones and ones with bugs between ranks that public trackers report, by two who had not read how runs are judged.

Usage: trainers.py OUT CASE... [--task tensor|statistics] [--seed N]     needs python3-torch (gloo)
       trainers.py --faults
       trainers.py --check [PROGRAM|BUG...] [--seed N]

A case is a program of PROGRAMS or PROGRAM-BUG; its recording is OUT/CASE. The programs and the FAULTS, with a report
of each, are in trainers_split.py (layers), trainers_stages.py (pipelines), trainers_experts.py, trainers_sequence.py
(parts of sequences), trainers_data.py (parts of the batch: losses, gradients that are joined) and trainers_states.py
(what is sharded or drifts). --check asserts that each program has the weights and last gradients of one process with
the whole batch and model, and that each bug moves one of them on some rank by more than 1e-3 of its norm.
"""
import scripts_frame
import trainers_data
import trainers_experts
import trainers_sequence
import trainers_split
import trainers_stages
import trainers_states

if __name__ == "__main__":
    scripts_frame.main(trainers_split, trainers_stages, trainers_experts, trainers_sequence, trainers_data,
                       trainers_states)
