#!/usr/bin/env python3
"""Dumps of runs on two to four ranks with bugs between ranks that public trackers report, and of the same networks
without one, by one who had not read how runs are judged.

Usage: tracked.py OUT CASE... [--task tensor|statistics] [--seed N]     needs python3-torch (gloo)
       tracked.py --check [NETWORK|BUG...]

As others.py; tests/selfcheck/score.py OUT --tracked scores these. A case is a network of NETS, with "-noise" or
without, or NETWORK-noise-BUG; each bug stands with a report of it in the FAULTS of tracked_tensor.py, tracked_parts.py
and tracked_data.py. --check does with each network what sound.py does, and says how far each bug moves gradients and
weights, on one rank at least.
"""
import functools
import sys

from command import command_line
import fault_check
import sound
import tracked_data
import tracked_parts
import tracked_tensor

PARTS = (tracked_tensor, tracked_parts, tracked_data)
FAULTS = {k: f for part in PARTS for k, f in part.FAULTS.items()}
NETS = {k: net for part in PARTS for k, net in part.NETS.items()}
RANKS = {k: net.RANKS for k, net in NETS.items() if hasattr(net, "RANKS")}


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(fault_check.main([a for a in sys.argv[1:] if a[0] != "-"], FAULTS, NETS, RANKS))
    command_line(FAULTS, functools.partial(sound.run, NETS, RANKS), RANKS)
