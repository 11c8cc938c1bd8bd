"""Run a scenario many times and evaluate the runs.

simulation.py     simulate: a scenario, a strategy and a seed give a run
runs.py           many runs on all cores, one flat row each (call_timeout.py ends assignors that never answer)
comparison.py     strategies side by side on the same seeds (intervals.py has the statistics)
saved_runs.py     a comparison read back from its JSON
recommend/        advice from a comparison: the strategy, the reasons, settings to paste, steps to migrate
report/           a comparison as one web page
sizing.py         partitions and consumers for a throughput (deploy_cost.py: the cost of a deploy of that group)
fetch_sessions/   fetch sessions that brokers need and have
"""
