"""Describe the shape of a scenario file, as pydantic classes and as JSON Schema.

scenario_form.py  ScenarioForm: topics, members, settings, timeline; start here
event_forms.py    the lines of a timeline
topic_form.py     a topic: records over time, their spread, the replicas
form_base.py      units as fields, strictness, forms with a short way to write
value_schemas.py  durations, rates and names as JSON Schema
json_schema.py    the published schema
"""
