"""Serve our coordinator to real clients: a broker of one node on a loopback port, in memory.

server.py              listens and dispatches
intake.py              frames from connections, bounded in seconds and bytes
served_coordinator.py  the dual coordinator with a real clock (kept_bytes.py: how much it keeps)
served_apis.py         what a broker answers besides group coordination
memory_log.py          topics and their records in memory
"""
