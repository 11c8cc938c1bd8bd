"""The wind tunnel: the machines of both protocols in virtual time, with a network, records and faults.

Start at   run.py (simulate: a scenario, a strategy and a seed give a run)
"""
