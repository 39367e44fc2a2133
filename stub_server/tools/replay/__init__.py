"""Sends the requests of a recording again, to a server of this process, and compares the answers.

A recording has a sandbox, the requests that followed, and the steps since. A replay supplies what
came from outside: the machine's time, request ids and credentials. It sends nothing to receivers of
webhooks: what they had a part in is taken from the recorded steps. Begin with `replaying.py`;
`recorded.py` decides which requests are skipped, `inputs.py` supplies what comes from outside,
`differences.py` compares.
"""
