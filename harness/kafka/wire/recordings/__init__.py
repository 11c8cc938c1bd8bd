"""Send one sequence to a real broker and to our coordinator, and compare the answers.

recording.py          to a broker, in real time (group_names.py: fresh names; broker_setup.py: settings and topics)
replay.py             to our coordinator, at the same moments
answer_comparison.py  differences, field by field (explained.py: differences with a known reason)
differential.py       the three together; one_recording.py is `rebalance-lab record`
"""
