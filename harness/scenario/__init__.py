"""Read, check and write scenario files: a group, its workload and a timeline of events.

model.py            Scenario and its events as frozen dataclasses
reader.py           a file to a Scenario (documents.py decodes YAML and JSON; checks.py refuses what cannot happen)
writer.py           a Scenario back to the data of a file
forms/              the shape of a file, as pydantic classes and as JSON Schema
events.py, topics.py, settings.py, strategy_lists.py   the parts of a file
application.py      how an application consumes, beyond its client's settings
constants.py        how long brokers and clients take, which no scenario says
from_group.py, to_group.py, presence.py, instance_ids.py   a group to a scenario and back
units.py            20s, 600/s, 0.1%, 20MB
"""
