"""Floor 5: judges a receiver of webhooks by what it answers and by what it does.

Imports `engine` and `events`; operations call `certify` in `receiver_rules.py`. Begin there: each rule is one function.
`receiver.py` sends and watches, `effects.py` is what it sees, `sample_events.py` has what is sent.
"""
