"""Serve the command line's answers over HTTP, to programs and to people.

service_settings.py  what an operator decides: address, limits, tokens, clusters; a TOML file and flags
app.py               the ASGI application, put together from what is below
routes/              one module a family of paths: documents, simulations, groups, about (health, metrics, page)
openapi/             what the paths take and give, as schemas with examples
connection/          what every request passes: id, host, token, headers, log line, deadlines
workers/             processes for all work that costs time, with limits
service.py           what the routes share: processes, cache, jobs, clusters (answer_cache.py, clusters.py)
places.py            how many long questions each client may have open
jobs.py              simulations that are followed, fetched and cancelled
page/                the web page: plain modules, no build step, nothing from elsewhere
Start at             app.create_app
"""
