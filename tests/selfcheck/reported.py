#!/usr/bin/env python3
"""Dumps of runs on two to four ranks with bugs between ranks that public trackers report, other ones than tracked.py's,
and of the same networks without one, by one who had not read how runs are judged.

Usage: reported.py OUT CASE... [--task tensor|statistics] [--seed N]     needs python3-torch (gloo)
       reported.py --check [NETWORK|BUG...]

As others.py; tests/selfcheck/score.py OUT --reported scores these. A case is a network of NETS, with "-noise" or
without, or NETWORK-noise-BUG; each bug stands with a report of it in the FAULTS of reported_copies.py,
reported_split.py and reported_shards.py. --check does what that of tracked.py does.
"""
import fault_check
import reported_copies
import reported_shards
import reported_split


if __name__ == "__main__":
    fault_check.main(reported_copies, reported_split, reported_shards)
