"""Do the work that costs time in processes of their own.

pool.py    the processes; the event loop only waits
worker.py  a process that answers one question after the other
work.py    what it can be asked
frames.py  how both talk over a socket
"""
