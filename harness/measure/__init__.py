"""Measure from a trace what happened: simulated and live runs are measured by the same code.

trace.py              facts in order of time, as JSON lines on disk
ownership.py          which process read which partition from when to when, as intervals
gaps.py               when no process read a partition that a member wants (start_up.py: the group's start-up)
lag_curve.py          how much waits to be processed, and for how long
read_ranges.py        which records of a partition have been read, and which twice
costs.py              all of that as one flat row; cost_descriptions.py has the words, cost_weights.py the cost function
invariants.py         what must hold after each fact; known_violations.py: what Kafka itself breaks

This room imports nothing of the engines.
"""
