"""Makes the machines move: virtual time and faults, or real brokers and real clients. Owns time, chance and transport.

sequences.py      a timed list of requests to a coordinator, and what it answers (sequence_file.py, message_json.py)
both_protocols.py one coordinator for classic and consumer groups, and for groups on their way between them
conversation.py   the short language of tests and examples: join, settle, show (stories.py words it)
brokers/          a running Kafka cluster behind one small interface
machine.py        what this computer has, and what is off without the rest
"""
