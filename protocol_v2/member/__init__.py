"""Run a KIP-848 consumer: one member as a machine without I/O.

member.py               Member: handle; what poll() and the background do, in order; start here
states.py               MEMBER_TRANSITIONS; STATES.md is printed from it
memory.py               all that a member remembers, and MemberTurn: one event's work
reconciliation.py       from owned to assigned partitions: commit, revoke, assign, acknowledge
heartbeat.py            what a heartbeat says, when it goes out, what its answer does
membership.py           joining, fenced, failed, left, stale; close.py: close()
callbacks.py            the queue between the background and the application's thread
commits.py, offsets.py  commits and their ends; where new partitions are read from
connection.py           finding and losing the coordinator
subscription.py         names, patterns, expressions
error_reactions.py      REACTIONS: every error code on every answer
config.py               the consumer's settings
"""
