"""Apply the events of a timeline to a world: a simulated one, or processes on a real cluster.

schedule.py             what each kind of event does, and when it continues by itself
lifecycle.py            processes start, stop, crash and come back
rollouts.py, scaling.py rolling restarts; scaling to a size and by the lag
replica_names.py        the identity that survives a process
subscription_wishes.py  topics that members subscribe to
"""
