"""Run a scenario many times and say what the runs mean.

simulation.py     simulate: a scenario, a strategy and a seed give a run
runs.py           many runs on all cores, one flat row each (call_timeout.py ends assignors that never answer)
comparison.py     strategies side by side on the same seeds (intervals.py has the statistics)
saved_runs.py     a comparison read back from its JSON
recommend/        an answer from a comparison: why, how sure, what to paste, how to get there
report/           a comparison as one web page
sizing.py         partitions and consumers for a throughput (deploy_cost.py: what a deploy of that group costs)
fetch_sessions/   fetch sessions that brokers need and have
"""
