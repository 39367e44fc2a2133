"""Sends the requests of a recording again, to a server of this process, and compares the answers.

A recording has a sandbox, the requests that followed, and what receivers of webhooks answered. A replay supplies what
came from outside: the machine's time, request ids, credentials, and the attempts to deliver, each at its recorded step.

It may import every room. Begin with `replaying.py`; `recorded.py` decides which requests are skipped,
`inputs.py` supplies what comes from outside, `differences.py` compares.
"""
