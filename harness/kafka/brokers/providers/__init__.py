"""Provide a cluster in one module for each way; providers/auto.py takes the first that can serve."""
