"""Ask the assignor under test.

targets.py  from a text or a class to the assignor (adapters/: other clients and other languages)
subject.py  asks under a time limit, turns mistakes into findings
answers.py  checks an answer once and makes it compact
rounds.py   rebalance rounds until nothing is withheld
"""
