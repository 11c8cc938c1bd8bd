"""Scenarios, groups and faults on real brokers, and the tools that judge them."""
