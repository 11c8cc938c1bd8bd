"""Search for a group that breaks a property, make it small, and report.

checking.py      from an assignor to its report card; start here
search.py        case after case; shrink.py: the smallest that still fails
hidden_state.py  what an answer depends on besides the group (sandbox.py: a child process per experiment)
report_card.py   the result as values; report_text.py prints it
"""
