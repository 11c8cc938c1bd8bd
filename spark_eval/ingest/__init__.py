"""What really happened to groups, as scenarios to replay under every strategy.

snapshots.py       groups as `group snapshot` writes them
event_logs.py      membership logs: JSON lines, CSV or Parquet; lines that make no sense are set aside and counted
offsets_source.py  __consumer_offsets of a cluster as a Spark data source
records.py         its records: the groups as they are now, and who came and went when
history.py         comings and goings of one group to a scenario
ingest.py          all of it, into a folder with scenarios and a sweep file
"""
