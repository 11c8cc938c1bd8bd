"""Draw the groups that an assignor is tried with.

random_source.py          seeded random numbers, or Hypothesis
random_groups.py          groups that have broken real assignors (group_shapes.py names their kinds)
group_events.py           events that change a group between two rebalances
example_families.py       a drawn group, then the same group after events
cases.py                  one example as a value and as JSON; fingerprints.py: whether it was changed by the assignor
hypothesis_strategies.py  topics, members, groups and churn for a user's own tests
"""
