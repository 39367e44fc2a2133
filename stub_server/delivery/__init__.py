"""Sends what a sandbox has to say to the receivers of its webhooks; and the inbox, a receiver in the server itself.

A timer of a sandbox says when an attempt is due. The courier claims it, puts it in the queue of its webhook, makes the
attempt when there is a place for it, and records the outcome as a step. The courier alone has queues, and what is under
way; nothing of that is state. A replay derives its own from it, which takes the attempts of the recording. Who answers
an attempt is an argument of the `Sender`.

Imports the engine and below. Begin with `courier.py`, then `posting.py` (one attempt), `advancing.py` (what controls
ask) and `inbox.py`.
"""
