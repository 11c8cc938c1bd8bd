"""Answer questions as plain data, which the command line prints with --json and the HTTP service sends.

assign_answer.py     a group, or many, through a strategy; several strategies side by side
simulate_answer.py   one run of a scenario
recommend_answer.py  a scenario, a group or a saved comparison to advice
size_answer.py       rates to partitions and consumers
Start at             assign_answer.answer_document
"""
