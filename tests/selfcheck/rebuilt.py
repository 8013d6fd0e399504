#!/usr/bin/env python3
"""Recordings of small trainers on two or four ranks, in the style of Megatron, Hugging Face, DeepSpeed,
torchtitan, fairseq and of plain scripts, right ones and ones with bugs between ranks that trackers of such libraries
report, by one who had not read how runs are judged.

Usage: rebuilt.py OUT CASE... [--task tensor|statistics] [--seed N]     needs python3-torch (gloo)
       rebuilt.py --faults
       rebuilt.py --check [PROGRAM|BUG...] [--seed N]

The programs and the FAULTS, with a report of each, are in rebuilt_split.py (layers), rebuilt_data.py (parts of
the batch), rebuilt_stages.py (pipelines) and rebuilt_experts.py; --check asserts that each program ends with the
weights of one process with the whole batch, and that each bug moves a weight.
"""
import rebuilt_data
import rebuilt_experts
import rebuilt_split
import rebuilt_stages
import scripts_frame

if __name__ == "__main__":
    scripts_frame.main(rebuilt_split, rebuilt_data, rebuilt_stages, rebuilt_experts)
