"""Makes the machines move: virtual time and faults, or real brokers and real clients. Owns time, chance and transport.

sequences.py      a timed list of requests to a coordinator, and what it answers (sequence_file.py, message_json.py)
both_protocols.py one coordinator for classic and consumer groups, and for groups on their way between them
conversation.py   the short language of tests and examples: join, settle, show (stories.py words it)
scenario/         scenario files: a group, its workload and a timeline of events (units.py reads 20s and 600/s)
sizing.py         how many partitions and consumers a throughput needs
fetch_sessions.py fetch sessions that brokers need and have (fetch_session_cache.py, fetch_load.py)
compare.py        strategies side by side on the same seeds: runs.py runs them, weights.py is the cost function,
                  intervals.py the statistics, saved_runs.py reads them back
recommend/        an answer from a comparison: why, how sure, what to paste, how to get there
report/           a comparison as one web page (timelines.py: a trace as intervals, words.py: costs in words)
brokers/          a running Kafka cluster behind one small interface
machine.py        what this computer has, and what is off without the rest
"""
