"""How people reach the lab. Edges translate; they do not decide.

cli.py        the command `rebalance-lab`: options, errors and exit codes
commands/     one module a command: read the input, call the room that knows, print
terminal.py   what the commands share: reading files, tables, the one-line error
"""
