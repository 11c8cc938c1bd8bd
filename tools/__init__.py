"""Maintain the repository: commands that neither users nor the product need.

state_diagrams.py  prints the four STATES.md files from the protocols' tables
audit.py           lists direct dependencies: version, licence, reason
calibrate.py       measures the simulator's constants on this machine
local_image.py     a Kafka image made of this machine's Java and Maven, nothing pulled: `make kafka-image`
"""
