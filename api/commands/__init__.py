"""One module a command. A command imports what it needs inside its function: starting one must not load the rest."""
