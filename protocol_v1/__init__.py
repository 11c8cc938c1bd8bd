"""Run the classic protocol (JoinGroup, SyncGroup, Heartbeat): its coordinator and its member are machines without I/O.

common/       what groups of every kind share: errors, effects, messages, the bytes of the consumer protocol
coordinator/  the broker's side; its states are drawn in coordinator/STATES.md
member/       the consumer's side; its states are drawn in member/STATES.md
"""
