"""Do the work that costs time in processes of their own.

pool.py    the processes; the event loop only waits
line.py    which waiting question gets the next free process
worker.py  a process that answers one question after the other
work.py    the questions that a process answers
frames.py  the messages between service and process on a socket
"""
