"""Run the harness thousands to millions of times as Spark jobs, and say what the runs mean.

sweep_file.py          reads a sweep, with sweep_parameters.py (grids, ranges, distributions) and scenario_paths.py
cells.py               every combination as a scenario of its own (run_cost.py: what a run of it will cost)
stages/                expand -> simulate -> aggregate -> publish, a module each: frame in, frame out
sweep.py, folder.py    goes wave by wave; keeps what is done
session.py, job.py     a laptop, local-cluster, a standalone cluster; what spark-submit takes
report/                a decision table as one web page
ingest/                snapshots, membership logs and __consumer_offsets become scenarios
default_table.py       the decision table that ships with the package (data/)
"""
