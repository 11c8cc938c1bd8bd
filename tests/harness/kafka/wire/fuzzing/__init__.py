"""Hostile peers for the wire: `python -m tests.harness.kafka.wire.fuzz` runs them.

hostile_frames.py   frames of a seed: random ones, valid ones, and valid ones that were changed
decoding.py         frames through the decoders and the coordinator in this process: the work of a watched child
watched_child.py    a child process that may end at any frame, and what it did last
over_sockets.py     the same frames over loopback sockets, beside an honest client (socket_child.py: the other side)
"""
