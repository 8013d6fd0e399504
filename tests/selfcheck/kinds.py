#!/usr/bin/env python3
"""Dumps of runs on two to four ranks with bugs of the kinds that last longest between ranks, and of the same
networks without one, by one who had not read how runs are judged.

Usage: kinds.py OUT CASE... [--task tensor|statistics] [--seed N]     needs python3-torch (gloo)
       kinds.py --check [NETWORK|BUG...]

As reported.py. The bugs are a gradient of what tensor-parallel ranks share, a loss scaled for another number
of ranks or words, replicas that drift, routers that differ, weights used twice, and experts' gradients; each
stands with a report of it in the FAULTS of kinds_split.py, kinds_experts.py and kinds_stages.py. --check does
what that of tracked.py does.
"""
import fault_check
import kinds_experts
import kinds_split
import kinds_stages


if __name__ == "__main__":
    fault_check.main(kinds_split, kinds_experts, kinds_stages)
