"""Turn a group into an assignment: pure functions, standard library only (except optimal.py).

model.py          Topic, Member, Group, Assignment, and the compact form beneath; start here
json_contract.py  the same as JSON; an error carries the path of the bad field
interface.py      Assignor: what a custom class implements
strategies.py     finds the assignor for a name such as `classic/sticky`
classic/          what a group leader's client computes
broker/           what the broker computes (KIP-848)
java/             Java's hash order; the only room that knows of it
subscribers.py    which members subscribe to a topic, and in which order they are served
quality.py        balance, moves, racks, load as one flat row; optimal.py is the exact optimum beside it
explain.py        why each partition went to its member
testing/          the property kit for custom assignors
"""
