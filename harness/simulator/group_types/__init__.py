"""Make the members and the coordinator of a run's strategy."""
