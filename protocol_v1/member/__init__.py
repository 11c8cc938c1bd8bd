"""Run a classic consumer: one member as a machine without I/O.

member.py                   Member: handle; what poll() does, in order; start here
states.py                   MEMBER_TRANSITIONS; STATES.md is printed from it
memory.py                   all that a member remembers, and MemberTurn: one event's work
join.py, prepare.py         the join loop, from JoinGroup to onPartitionsAssigned; what comes before it
leader.py, subscription.py  the leader's assignment; topics, patterns, metadata
heartbeat.py                heartbeats, session and poll deadlines
connection.py               finding and losing the coordinator
commits.py, offsets.py      which commits may start; their answers, and where new partitions are read from
leave.py                    close, unsubscribe, a poll that came too late
error_reactions.py          REACTIONS: every error code on every answer
config.py                   the consumer's settings
"""
