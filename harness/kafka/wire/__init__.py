"""Connect the machines to real peers: our members beside real clients, our coordinator for real clients.

codec.py, entities.py   the lab's messages as kio's entities and back; entities from plain dicts
frame_check.py          lengths against what is left of a frame, before kio reads it (frame_reader.py)
addresses.py            where the lab may connect: this machine, or the configured test cluster
broker_connection.py    one connection: requests out, answers by correlation id (connection_pool.py)
cluster.py              versions, nodes, topics, which node coordinates a group
recordings/             one sequence to a broker and to our coordinator, and what differs
members/                our members on a cluster: `rebalance-lab live --assignor`
served/                 our coordinator for real clients: a broker of one node

Importing this package imports nothing: kio and confluent-kafka come with the modules that need them.
"""
