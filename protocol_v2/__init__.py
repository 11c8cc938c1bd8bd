"""KIP-848, the consumer group protocol: coordinator and member, without I/O.

Read in this order: messages, states (the tables), reconciliation (the heart), progress (one heartbeat's way through
the group), heartbeat and leave, target_assignment, subscriptions, records, then coordinator, which ties them together.
static_members, offsets and admin are what their names say; migration serves classic members inside a consumer group,
conversion turns one kind of group into the other, and classic_side is what both ask of a classic coordinator.
"""
