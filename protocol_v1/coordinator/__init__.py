"""Serve classic groups: the coordinator is one partition of __consumer_offsets, as a machine without I/O.

coordinator.py                   Coordinator: handle, on_timer, on_append, load, unload; start here
gate.py                          errors that a broker answers before it looks at the group
join.py, sync.py                 the join phase and the sync phase
heartbeat.py, leave.py           heartbeats and expired sessions; LeaveGroup
rebalance.py                     a rebalance, from its first cause to the next generation
static_members.py                takeovers (KIP-345, KIP-814)
offsets.py, transactions.py      which members may commit in which state; commits inside transactions
admin.py                         views, deletion, expiry
placement.py, config.py          which partition coordinates a group; the broker's settings
state/                           what is remembered: states, the group, records, the shard, the order of members
"""
