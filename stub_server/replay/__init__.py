"""Floor 12: sends the requests of a recording again, to a server of this process, and compares the answers.

It may import every room. Begin with `replaying.py`; `skipped.py` decides what is not sent, `inputs.py` supplies time,
ids and credentials, `receivers.py` answers deliveries as recorded, `differences.py` compares.
"""
