"""What coordinators write to the topic __consumer_offsets, decoded: groups of both protocols, members, offsets.

Reading order:
  schemas.py    the kinds of record, as data
  decoding.py   bytes to values: decode_record
  reading.py    the topic of a live cluster, from its beginning to where it ended when one began to read
"""
