"""The machines on the wire: our members beside real clients, our coordinator for real clients, and both compared.

Reading order:
  codec.py, entities.py   the lab's messages as kio's entities and back; entities from plain dicts
  addresses.py            where the lab may connect: this machine, or the configured test cluster
  connection.py           one connection: requests out, answers by correlation id
  cluster.py              versions, nodes, topics, who coordinates a group
Compared with a broker:
  recording.py            a sequence sent to a broker in real time (pool.py, group_names.py)
  replay.py               the same to our coordinator, at the same moments
  comparison.py           what differs, field by field (explained.py has what may)
  differential.py         the three together; shrinking.py, one_recording.py (`rebalance-lab record`)
Our members on a cluster:
  driver.py               a member machine with a real network, clock and application (fetching.py)
  live_members.py         several of them in a group: `rebalance-lab live --assignor`
Our coordinator for real clients:
  server.py               a broker of one node (served_coordinator.py, served_apis.py, memory_log.py)

Importing this package imports nothing: kio and confluent-kafka come with the modules that need them.
"""
