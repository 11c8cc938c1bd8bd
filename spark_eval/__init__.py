"""Thousands to millions of harness runs as a Spark job, and what they say.

A sweep file      sweep_file.py reads it, with parameters.py (grids, ranges, distributions, cases) and places.py (paths)
Its cells         cells.py: every combination as a scenario of its own, with what a run of it will cost
Stages            expand -> simulate -> aggregate -> publish, a module each: frame in, frame out, schemas.py
Running them      sweep.py goes wave by wave; plan.py deals runs out to tasks; folder.py keeps what is done
Where it runs     session.py: a laptop, local-cluster, a standalone cluster; job.py is what spark-submit takes
What came of it   decision_table.py, report/
Real inputs       ingest/: snapshots, membership logs and __consumer_offsets become scenarios
"""
