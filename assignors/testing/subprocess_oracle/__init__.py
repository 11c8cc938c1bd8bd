"""Ask the same assignor in another process, with another hash seed and in another order.

subprocess_oracle.py  starts the process and asks; answering.py runs there
line_format.py        groups and answers as lines
"""
