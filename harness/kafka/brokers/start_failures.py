"""Find in a log why a start failed, as much as fits into one line of an error."""

LINES = 3
LENGTH = 300
ALARMS = ("ERROR", "FATAL", "Exception", "Error:")


def last_words(log: str) -> str:
    """Return the last lines, or those that sound an alarm: a dying broker goes on talking about other things."""
    lines = [line.strip() for line in log.splitlines() if line.strip() and not line.startswith("\tat ")]
    alarms = [line for line in lines if any(word in line for word in ALARMS)]
    return " | ".join(line[:LENGTH] for line in (alarms or lines)[-LINES:]) or "the log is empty"
