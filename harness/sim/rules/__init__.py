"""Rules of the protocols that the invariant checker holds every run to (harness/sim/invariants.py)."""
