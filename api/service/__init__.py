"""The HTTP service: the command line's answers for services and for people.

settings.py    what an operator decides: address, limits, tokens, clusters; a TOML file and flags
app.py         the ASGI application, put together from what is below
routes/        one module a family of paths: documents, simulations, groups, about (health, metrics, page)
openapi/       what the paths take and give, as schemas with examples
edge.py        what every request passes: its id, its host, its token, its headers, its log line
protocol.py    a connection's deadlines: who sends slowly is sent away
pool.py        processes for all work that costs time, with limits; worker.py is the process, work.py its questions
jobs.py        simulations that are followed, fetched and cancelled
page/          the web page: plain modules, no build step, nothing from elsewhere
Start at       app.create_app
"""
