"""How people reach the lab. Edges translate; they do not decide.

cli.py        the command `rebalance-lab`: options, errors and exit codes
commands/     one module a command: read the input, call the room that knows, print
answers/      questions to answers as data, for the command line's --json and for HTTP alike
service/      the HTTP service and its page; client.py is its typed client
terminal.py   what the commands share: reading files, tables, the one-line error
"""
