"""Assign as Kafka's sticky assignor does.

sticky.py                 StickyAssignor, and the builder for equal subscriptions: balance first, then keep
mixed_subscriptions.py    where subscriptions differ (mixed_builder.py; partition_moves.py remembers what moved)
claims.py                 what members say they own, before anything is decided
unknown_claims.py         claims on partitions that do not exist (mixed_unknown_claims.py: with mixed subscriptions)
sticky_racks.py           filling up members rack by rack (KIP-881)
user_data.py              the bytes that sticky members send along
"""
