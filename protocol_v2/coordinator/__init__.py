"""Serve KIP-848 groups: the coordinator is one partition of __consumer_offsets, as a machine without I/O.

coordinator.py             Coordinator: handle, on_timer, on_append, load, unload; start here
gate.py, fencing.py        errors before the group is looked at; which member id and epoch a request may carry
heartbeat.py, leave.py     ConsumerGroupHeartbeat; the end of memberships
static_members.py          an instance id outlives its member ids
offsets.py                 which member may commit with which epoch
admin.py, config.py        views and deletions; the broker's settings
assignment/                from subscriptions to a target assignment, and from there to each member's next step
classic_members/           classic members in a consumer group, and groups that change their protocol
state/                     what is remembered: states, the group, values, records, the shard
"""
