"""Pure functions: a group in, an assignment out. Standard library only, except optimal.py.

Read in this order
model.py           Topic, Member, Group, Assignment, and the compact form beneath
json_contract.py   the same as JSON; an error carries the path of the bad field
interface.py       Assignor: what a custom class implements
strategies.py      `classic/sticky` and the like: from a name to an assignor
"""
