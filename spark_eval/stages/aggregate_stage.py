"""Turn results into figures for each cell and strategy, in Spark SQL: stage three.

scored         every run that got to its end, with its cost by the weights
by_strategy    a cell's strategies: quantiles, medians of all costs, wins, paired difference to the cell's best, front
sensitivity    how much of a strategy's cost each parameter decides

Sound          a strategy that failed in any run of a cell has no wins and no place there, as in `compare`
Paired         differences are taken seed by seed before the median; intervals as in harness/evaluate
Start at       by_strategy
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rebalance_lab.harness.evaluate.intervals import cut
from rebalance_lab.harness.measure.cost_weights import NAMES

FRONT = ("standstill_s", "moved", "read_twice")
"""The costs of a Pareto front: no strategy on it is worse than another in all three."""


def scored(results: DataFrame, weights: Mapping[str, float]) -> DataFrame:
    """Return scores to a thousandth, as harness/measure/cost_weights.py has it."""
    total = " + ".join(f"{weight!r}D * {name}" for name, weight in weights.items() if weight)
    return results.where("error is null").select("*", F.expr(f"round({total}, 3)").alias("cost"))


def cuts(counted: DataFrame) -> DataFrame:
    """Return how many values an interval of the median leaves out at each end, for every number of values there is."""
    sizes = [row[0] for row in counted.selectExpr("runs - failed").distinct().collect()]
    rows = [(size, cut(size)[0]) for size in sizes if size]
    return counted.sparkSession.createDataFrame(rows, "count int, leave int")


def with_interval(frame: DataFrame, values: str, name: str, left_out: DataFrame) -> DataFrame:
    """Add `name`, `name`_low and `name`_high from a column of sorted values."""
    held = F.broadcast(left_out)
    return (
        frame.join(held, F.size(values) == held["count"])
        .withColumns(
            {
                name: F.expr(f"round(({values}[(size({values}) - 1) div 2] + {values}[size({values}) div 2]) / 2, 6)"),
                f"{name}_low": F.expr(f"{values}[leave]"),
                f"{name}_high": F.expr(f"{values}[size({values}) - 1 - leave]"),
            }
        )
        .drop("count", "leave", values)
    )


def by_strategy(results: DataFrame, weights: Mapping[str, float], strategies: Sequence[str]) -> DataFrame:
    """Return one row for each cell and strategy."""
    spark = results.sparkSession
    runs = scored(results, weights)
    order = spark.createDataFrame(list(enumerate(strategies)), "listed int, strategy string")
    counted = counts(results)
    left_out = cuts(counted)
    costs = with_interval(quantiles(runs), "all_costs", "cost", left_out)
    counted = counted.join(costs, ["cell_id", "strategy"], "left").join(F.broadcast(order), "strategy")
    ranked = spark.sql(
        """
        select *, case when failed = 0 then row_number() over (
                      partition by cell_id order by failed > 0, cost, listed) end as place
        from {counted}
        """,
        counted=counted,
    )
    sound = ranked.where("failed = 0").select("cell_id", "strategy", "place")
    more = with_interval(differences(runs, sound), "all_differences", "more", left_out)
    keys = ["cell_id", "strategy"]
    whole = ranked.join(wins(runs, sound), keys, "left").join(more, keys, "left").join(front(ranked), keys, "left")
    return whole.drop("listed").fillna({"wins": 0.0, "front": False})


def counts(results: DataFrame) -> DataFrame:
    return results.sparkSession.sql(
        "select cell_id, strategy, count(*) as runs, count(error) as failed from {results} group by cell_id, strategy",
        results=results,
    )


def quantiles(runs: DataFrame) -> DataFrame:
    medians = ", ".join(f"round(percentile({name}, 0.5), 6) as {name}" for name in NAMES)
    return runs.sparkSession.sql(
        f"""
        select cell_id, strategy, sort_array(collect_list(cost)) as all_costs,
               round(percentile(cost, 0.1), 3) as cost_p10, round(percentile(cost, 0.9), 3) as cost_p90,
               round(percentile(unowned_s + stalled_s, 0.5), 6) as standstill_s, {medians}
        from {{runs}} group by cell_id, strategy
        """,
        runs=runs,
    )


def wins(runs: DataFrame, sound: DataFrame) -> DataFrame:
    """Return the share of seeds in which no strategy was better; strategies that are equal share a seed."""
    return runs.sparkSession.sql(
        """
        with best as (
            select r.cell_id, r.seed, r.strategy, r.cost, min(r.cost) over (partition by r.cell_id, r.seed) as least
            from {runs} r join {sound} s on r.cell_id = s.cell_id and r.strategy = s.strategy),
        shared as (
            select *, sum(int(cost = least)) over (partition by cell_id, seed) as winners from best)
        select cell_id, strategy, round(avg(if(cost = least, 1.0D / winners, 0.0D)), 4) as wins
        from shared group by cell_id, strategy
        """,
        runs=runs,
        sound=sound,
    )


def differences(runs: DataFrame, sound: DataFrame) -> DataFrame:
    """Return the differences of every strategy to the cell's best, seed by seed."""
    return runs.sparkSession.sql(
        """
        with best as (
            select r.cell_id, r.seed, r.cost from {runs} r
            join {sound} s on r.cell_id = s.cell_id and r.strategy = s.strategy where s.place = 1)
        select r.cell_id, r.strategy, sort_array(collect_list(round(r.cost - b.cost, 3))) as all_differences
        from {runs} r join best b on r.cell_id = b.cell_id and r.seed = b.seed group by r.cell_id, r.strategy
        """,
        runs=runs,
        sound=sound,
    )


def front(ranked: DataFrame) -> DataFrame:
    """Return the strategies that no other beats in one of FRONT without losing in another."""
    no_worse = " and ".join(f"o.{name} <= t.{name}" for name in FRONT)
    better = " or ".join(f"o.{name} < t.{name}" for name in FRONT)
    return ranked.sparkSession.sql(
        f"""
        select t.cell_id, t.strategy, not exists (
            select 1 from {{ranked}} o
            where o.cell_id = t.cell_id and o.failed = 0 and {no_worse} and ({better})) as front
        from {{ranked}} t where t.failed = 0
        """,
        ranked=ranked,
    )


def sensitivity(results: DataFrame, weights: Mapping[str, float], levels: DataFrame) -> DataFrame:
    """Return how much of the differences in cost goes with a parameter's level, for each strategy: between 0 and 1.

    Costs count by their logarithm: one cell that costs a hundred times as much would otherwise be all there is to see.
    """
    return results.sparkSession.sql(
        """
        with runs as (select cell_id, strategy, cost, ln(1 + cost) as size from {runs}),
        means as (select strategy, avg(size) as mean, sum(pow(size, 2)) - count(*) * pow(avg(size), 2) as whole
                  from runs group by strategy),
        leveled as (
            select l.parameter, l.level, r.strategy, count(*) as runs, avg(r.size) as mean,
                   round(percentile(r.cost, 0.5), 3) as median
            from runs r join {levels} l on r.cell_id = l.cell_id group by l.parameter, l.level, r.strategy)
        select l.parameter, l.strategy,
               round(if(first(m.whole) < 1e-9, 0.0D,
                        sum(l.runs * pow(l.mean - m.mean, 2)) / first(m.whole)), 4) as share,
               sort_array(collect_list(struct(l.level, l.median, l.runs))) as levels
        from leveled l join means m on l.strategy = m.strategy group by l.parameter, l.strategy
        """,
        runs=scored(results, weights),
        levels=levels,
    )
