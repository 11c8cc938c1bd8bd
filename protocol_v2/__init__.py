"""KIP-848, the consumer group protocol: coordinator and member, without I/O.

Read in this order: messages, states (the tables), reconciliation (the heart), progress (one heartbeat's way through
the group), heartbeat and leave, target_assignment, subscriptions, records, then coordinator, which ties them together.
static_members, offsets and admin are what their names say; migration serves classic members inside a consumer group,
conversion turns one kind of group into the other, and classic_side is what both ask of a classic coordinator.

The consumer's side
member.py                 Member: handle; what poll() and the background do, in order; member_config.py: its settings
member_states.py          its states and MEMBER_TRANSITIONS; MEMBER_STATES.md is printed from it
member_memory.py          all that it remembers, and MemberTurn: one event's work
member_reconciliation.py  the heart: commit, revoke, assign, acknowledge
member_heartbeat.py       what a heartbeat says, when it goes out, what its answer does
member_membership.py      joining, fenced, failed, left, stale; member_close.py: close()
member_callbacks.py       the queue between the background and the application's thread
member_commits.py         commits and their ends; member_offsets.py: where new partitions go on
member_connection.py      finding and losing the coordinator; member_subscription.py: names, patterns, expressions
member_errors.py          REACTIONS: every error code on every answer
"""
