"""Questions to answers as plain data: what the command line prints with --json and what the HTTP service sends.

assign.py      a group, or many, through a strategy; several strategies side by side
simulate.py    one run of a scenario
recommend.py   a scenario, a group or a saved comparison to advice
size.py        rates to partitions and consumers
Start at       assign.answer_document
"""
