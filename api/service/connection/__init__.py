"""Guard what comes in and goes out, before and after the routes.

edge.py       what every request passes
bodies.py     a body in, held to its size and its time; an answer out
deadlines.py  connections that never finish a request
framing.py    requests whose end is in doubt
half_closed.py, client_presence.py   clients that end their side, and clients that are gone
body_room.py  how many bytes of bodies are held, of one client and in all
clients.py    clients and their names, for limits
host_names.py by which names clients may come
auth.py       which client sends a request, and how often it may
problems.py   RFC 9457 problems
json_logs.py, metrics.py   what is logged and counted
"""
