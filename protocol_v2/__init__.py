"""Run the consumer group protocol (KIP-848): its coordinator and its member are machines without I/O.

common/       messages, topics, and regular expressions as a broker reads them
coordinator/  the broker's side; its states are drawn in coordinator/STATES.md
member/       the consumer's side; its states are drawn in member/STATES.md
"""
