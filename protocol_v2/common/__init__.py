"""What coordinator and member of KIP-848 share.

messages.py  ConsumerGroupHeartbeat and ConsumerGroupDescribe, fielded as Kafka's
topics.py    the topics that are known, as one immutable image
regex.py     regular expressions as a broker reads them (RE2); regex_program.py runs them
"""
