"""From a comparison to an answer: which strategy, why, how sure, what to paste, and how to get there.

advice.py      decides, and says why and how sure
properties.py  what to paste for Java clients, for librdkafka clients, and on the brokers; with client_settings.py (what
               members have of their own) and librdkafka.py (what it takes)
migration.py   the steps from what runs now
cautions.py    what one should know before doing it
group_life.py  a life for a group of which only its present is known
Start at       advice.recommend
"""
