"""Make a recommendation from a comparison: which strategy, why, how sure, what to paste, and how to get there.

advice.py               decides, and says why and how sure
properties_to_paste.py  settings for Java clients, for librdkafka clients, and for the brokers
client_settings.py      settings that members have of their own; librdkafka_limits.py: what librdkafka accepts
migration_steps.py      the steps from what runs now
cautions.py             warnings about the recommended strategy; idle_members.py: members without a partition
group_life.py           a life for a group of which only the present is known
evidence.py             what a decision table says of similar scenarios (features.py, decision_table.py)
Start at                advice.recommend
"""
