"""Take a sweep from cells to a decision table, a stage a module: frame in, frame out.

expand.py         cells to runs (plan.py deals them out to tasks)
simulate.py       runs to results
aggregate.py      results to what they say
publish.py        the decision table as Parquet and JSON
frame_schemas.py  the columns of each frame
"""
