#!/usr/bin/env python3
"""Recordings of small trainers on two or four ranks, as users of several libraries write them, right ones and
ones with bugs between ranks that trackers of those libraries report, by one who had not read how runs are judged.

Usage: rebuilt.py OUT CASE... [--task tensor|statistics] [--seed N]     needs python3-torch (gloo)
       rebuilt.py --faults
       rebuilt.py --check [PROGRAM|BUG...] [--seed N]

The programs and the FAULTS, with a report of each, are in rebuilt_parts.py; --check asserts that each program
ends with the weights of one process with the whole batch, and that each bug moves a weight.
"""
import rebuilt_parts
import scripts_frame

if __name__ == "__main__":
    scripts_frame.main(rebuilt_parts)
