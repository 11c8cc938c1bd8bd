"""Define what the coordinator and the member of KIP-848 share.

messages.py     ConsumerGroupHeartbeat and ConsumerGroupDescribe, fielded as Kafka's
topic_image.py  the topics that are known, as one immutable image
regex.py        regular expressions as a broker reads them (RE2); regex_program.py runs them
"""
