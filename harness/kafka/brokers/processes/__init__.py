"""Run what a provider needs as processes that never outlive their owner.

artifacts.py         Kafka's own jars from Maven (pom.xml); java.py: the Java runtime to run them with
owned_process.py     processes and folders that end with their owner (keeper.py runs beside each)
container_keeper.py  removes the containers of a run when its owner is gone
local_engine.py      a Docker engine where none answers
"""
