"""Hold the data that ships with the package: decision_table.json."""
