"""Talk to the state machines in a few lines: conversations for tests and examples, request sequences for files.

conversations.py    classic_group() and consumer_group(): join, settle, show (message_text.py words it)
stage.py            the common part of conversations: processes, a coordinator, a network, virtual time
sequence_file.py    a timed list of requests as JSON (message_json.py: bodies; references.py: `$a1.member_id`)
sequence_player.py  plays such a file to a coordinator
protocol_churn.py   churn of the property kit through real members and a real coordinator
"""
