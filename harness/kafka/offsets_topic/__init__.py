"""Decode what coordinators write to the topic __consumer_offsets: groups of both protocols, members, offsets.

record_schemas.py  the kinds of record, as data
decoding.py        bytes to values: decode_record
topic_reader.py    the topic of a live cluster, from its beginning to where it ended when the reading began
"""
