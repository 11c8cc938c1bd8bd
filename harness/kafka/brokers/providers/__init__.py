"""Provide a cluster, a module a way to have one; providers/auto.py takes the first that can serve."""
