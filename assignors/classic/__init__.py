"""Assign as a group leader's Java client does (classic protocol), and the lab's own load-aware.

range.py               a contiguous block per topic (block_share.py, range_racks.py)
round_robin.py         all partitions dealt in a circle
sticky/                balance first, then keep what was owned
cooperative_sticky.py  sticky, withholding what another member still holds
load_aware.py          the lab's own: even load for the capacity there is, few moves
racks.py               racks as client assignors see them (KIP-881)
"""
