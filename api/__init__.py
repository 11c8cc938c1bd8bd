"""Connect people and programs to the lab. This room translates; it decides nothing.

cli.py        the command `rebalance-lab`: options, errors and exit codes
commands/     one module a command: read the input, call the room that knows, print
answers/      answers as data, for the command line's --json and for HTTP alike
service/      the HTTP service and its page; client.py is its typed client
terminal.py   what the commands share: reading files, tables, the one-line error
"""
