"""Turn what really happened to groups into scenarios, to replay under every strategy.

snapshots              `group snapshot` writes them; ingest.py reads them
event_logs.py          membership logs: JSON lines, CSV or Parquet; unreadable lines are set aside and counted
offsets_source.py      __consumer_offsets of a cluster as a Spark data source
membership_records.py  its records: the groups as they are now, and which members came and went when
group_scenario.py      comings and goings of one group to a scenario
ingest.py              all of it, into a folder with scenarios and a sweep file
"""
