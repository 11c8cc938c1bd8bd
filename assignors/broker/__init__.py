"""Assign as a Kafka broker does for KIP-848 groups.

range.py       a contiguous block per topic
uniform.py     members keep what they have up to a quota; uniform_mixed.py where subscriptions differ
group_view.py  what both read from a group: topic ids, subscription type, current assignments
"""
