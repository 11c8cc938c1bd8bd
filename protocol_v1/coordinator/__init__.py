"""Coordinate classic groups: one partition of __consumer_offsets, as a machine without I/O.

coordinator.py                   Coordinator: handle, on_timer, on_append, load, unload; start here
gate.py                          refusals before a group is looked at
join.py, sync.py                 the join phase and the sync phase
heartbeat.py, leave.py           heartbeats and silence; the way out
rebalance.py                     from the first cause to the next generation
static_members.py                takeovers (KIP-345, KIP-814)
offsets.py, transactions.py      which members may commit in which state; commits inside transactions
admin.py                         views, deletion, expiry
placement.py, config.py          which partition coordinates a group; the broker's settings
state/                           what is remembered: states.py, group.py, records.py, shard.py, member_order.py
"""
