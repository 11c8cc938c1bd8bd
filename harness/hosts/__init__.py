"""Run coordinators and members for a host that owns the clock.

coordinator_host.py  the interface between a host and its coordinator
dual_coordinator.py  one coordinator for classic and KIP-848 groups, and for groups on their way between them
"""
