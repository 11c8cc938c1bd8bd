"""Run a sweep as a job of spark-submit, on any cluster that spark-submit reaches.

    make wheel
    spark-submit --master URL --py-files dist/rebalance_lab-0.1.0-py3-none-any.whl \\
        spark_eval/job.py SWEEP.yaml --out hdfs:///sweeps/one [--resume]

Executors need Python with pydantic, pyyaml, networkx and pyarrow; nothing is shared but the output path.
Exit code 0; 1 when a run failed; 2 for bad input, with one line.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Run a sweep on the cluster that spark-submit names.")
    parser.add_argument("sweep", metavar="SWEEP", help="YAML or JSON, where the driver runs")
    parser.add_argument("--out", required=True, metavar="DIR", help="a path or URL that driver and executors share")
    parser.add_argument("--resume", action="store_true", help="only what is missing")
    options = parser.parse_args(arguments)

    from pyspark.sql import SparkSession

    from rebalance_lab.assignors.json_contract import ContractError
    from rebalance_lab.spark_eval.folder import Folder
    from rebalance_lab.spark_eval.session import archive_of_packages
    from rebalance_lab.spark_eval.sweep import run_sweep
    from rebalance_lab.spark_eval.sweep_file import load_sweep

    try:
        sweep = load_sweep(options.sweep)
        spark = SparkSession.builder.appName(sweep.name).getOrCreate()
        with tempfile.TemporaryDirectory() as folder:
            # Of --py-files, Spark puts a wheel on the driver's path and not on the executors'.
            spark.sparkContext.addPyFile(str(archive_of_packages(Path(folder))))
            outcome = run_sweep(spark, sweep, Folder(spark, options.out), resume=options.resume)
    except ContractError as error:
        sys.stderr.write(f"rebalance-lab: {error}\n")
        return 2
    print(json.dumps(outcome.to_json(), ensure_ascii=False))
    spark.stop()
    return 1 if outcome.failures else 0


if __name__ == "__main__":
    sys.exit(main())
