"""Run the commands, one module each. A command imports what it needs inside its function, so that it starts quickly."""
