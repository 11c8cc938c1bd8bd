"""The classic protocol (JoinGroup, SyncGroup, Heartbeat): coordinator and member as machines without I/O.

Read in this order
messages.py           the requests and responses, fielded as Kafka's; errors.py has the codes
light.py              dataclasses for what is made by the hundred thousand
effects.py            what a machine wants done: Reply, SetTimer, CancelTimer, Append, StateChanged
consumer_protocol.py  the subscription and assignment bytes inside JoinGroup and SyncGroup
states.py             group states, events and TRANSITIONS; STATES.md is printed from it
group.py              a group and its members; hash_order.py is Java's order of them
shard.py              the coordinator's memory, and Turn: one event's work
rebalance.py          from the first cause to the next generation
join.py               the way in; static_members.py: takeovers (KIP-345, KIP-814)
sync.py, sessions.py  assignments; heartbeats and silence
leave.py, offsets.py  the way out; who may commit in which state
admin.py, gate.py     views, deletion, expiry; refusals before a group is looked at
records.py            what is written down, and replay()
coordinator.py        Coordinator: handle, on_timer, on_append, load, unload
placement.py          which partition coordinates a group; config.py: the broker's settings

The consumer's side
member.py             Member: handle; what poll() does, in order; member_config.py: the consumer's settings
effects/member.py      what a member is told and what it wants done: Poll, Responded, Call, Send, ...
member_states.py      its states and MEMBER_TRANSITIONS; MEMBER_STATES.md is printed from it
member_memory.py      all that it remembers, and MemberTurn: one event's work
member_join.py        the join loop, from JoinGroup to onPartitionsAssigned; member_prepare.py: what comes before
member_leader.py      the leader's assignment; member_subscription.py: topics, patterns, metadata
member_heartbeat.py   heartbeats, session and poll deadlines; member_connection.py: finding and losing the coordinator
member_commits.py     who may commit; member_offsets.py: the answers, and where new partitions go on
member_leave.py       close, unsubscribe, a poll that came too late
member_errors.py      REACTIONS: every error code on every answer
"""
