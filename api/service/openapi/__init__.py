"""Describe what the paths take and give, in OpenAPI 3.1.

schemas.py           the JSON contract, scenarios, answers and problems as JSON Schema
query_parameters.py  parameters of a query: described once, read strictly by the same description
operations.py        how a route is documented: body, answers, problems, links
examples.py          an example for everything, made by the code itself and kept in examples.json
"""
