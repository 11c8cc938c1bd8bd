"""The options of each command, as typer reads them. Bodies are in api/commands/, and imported when called."""
