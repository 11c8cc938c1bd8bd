"""Compute a target assignment, and move each member towards it.

progress.py           the steps of one heartbeat: store the member, look at topics, renew the target, reconcile
subscriptions.py      names, regular expressions, topics that come and go (subscription_type.py: all alike or not)
target_assignment.py  group epoch to target assignment, through an assignor (topic_order.py)
reconciliation.py     target assignment to a member's next state and epoch
"""
