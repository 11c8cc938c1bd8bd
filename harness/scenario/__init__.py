"""Scenario files: what happens to a group, read from YAML or JSON and checked with the path of the bad field.

model.py          a Scenario and its parts as plain values; all that a simulation needs to import
reading.py        load_scenario, parse_scenario: from a file or from data (decoded by documents.py, held to checks.py)
form.py, forms.py the file's shape, with topic_form.py and event_forms.py; topics.py and events.py build the values
settings.py       clients' and brokers' settings by their Kafka names; strategy_lists.py what a group runs; instances.py
                  the group.instance.id of each member
writing.py        scenario_json: a Scenario back to data that reads as the same
from_group.py     a Scenario around a group that is there; schema.py the JSON Schema; timeline.py who is there when
"""
