"""Run coordinators and members for whoever owns the clock.

coordinator_host.py  what a host asks of a coordinator, and hands to it
dual_coordinator.py  one coordinator for classic and KIP-848 groups, and for groups on their way between them
"""
