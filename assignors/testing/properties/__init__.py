"""State what an assignor is held to.

contract.py        every property by name, and the promise under which it is held; start here
promises.py        the promises by name
validity.py        what every assignor is held to, and the three balances
moves.py           sticky, minimal moves, cooperative, racks
churn.py           a whole history instead of one rebalance
trial.py           one case on its way through the properties
kafka_breaches.py  properties that Kafka's own assignors are known to break
"""
