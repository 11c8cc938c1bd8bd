"""Put our member machines on a real cluster.

driver.py        one member with a real network, clock and application (fetching.py: records from their leaders)
live_members.py  several members in a group: `rebalance-lab live --assignor`
"""
