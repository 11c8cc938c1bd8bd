"""Define what groups of both protocols share. protocol_v2 imports this room of protocol_v1 and no other.

messages.py           requests and responses, fielded as Kafka's; txn_messages.py: TxnOffsetCommit
errors.py             Kafka's error codes, and the lab's own two exceptions
effects.py            what a coordinator asks its driver to do: Reply, SetTimer, CancelTimer, Append, StateChanged
member_effects.py     what a member is told, and what it asks its driver to do: Poll, Responded, Call, Send
consumer_protocol.py  the subscription and assignment bytes inside JoinGroup and SyncGroup
fast_dataclass.py     dataclasses for values that a run creates by the hundred thousand
"""
