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
import fault_check
import tracked_data
import tracked_parts
import tracked_tensor


if __name__ == "__main__":
    fault_check.main(tracked_tensor, tracked_parts, tracked_data)
