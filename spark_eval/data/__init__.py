"""What the package brings along: decision_table.json."""
