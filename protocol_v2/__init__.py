"""KIP-848, the consumer group protocol: coordinator and member as state machines without I/O.

common/       messages, topics, and regular expressions as a broker reads them
coordinator/  the broker's side; its states are drawn in coordinator/STATES.md
member/       the consumer's side; its states are drawn in member/STATES.md
"""
