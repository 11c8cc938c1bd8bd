"""Take a sweep from cells to a decision table, a stage a module: frame in, frame out.

expand_stage.py     cells to runs (plan.py deals them out to tasks)
run_stage.py        runs to results
aggregate_stage.py  results to figures for each cell and strategy
publish_stage.py    the decision table as Parquet and JSON
frame_schemas.py    the columns of each frame
"""
