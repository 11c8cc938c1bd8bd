"""What groups of every kind share. protocol_v2 imports this room of protocol_v1 and no other.

messages.py           requests and responses, fielded as Kafka's; txn_messages.py: TxnOffsetCommit
errors.py             Kafka's error codes, and the lab's own two exceptions
effects.py            what a coordinator wants done: Reply, SetTimer, CancelTimer, Append, StateChanged
member_effects.py     what a member is told and wants done: Poll, Responded, Call, Send
consumer_protocol.py  the subscription and assignment bytes inside JoinGroup and SyncGroup
fast_dataclass.py     dataclasses for what is made by the hundred thousand
"""
