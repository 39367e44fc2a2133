"""Sends what a sandbox has to say to the receivers of its webhooks, is a receiver itself, and
judges one.

A timer of a sandbox says when an attempt is due. The courier claims it, puts it in the queue of its
webhook, makes the attempt when there is a place for it, and records the outcome as a step. The
courier alone has queues, and what is under way; nothing of that is state.

Imports `engine` and above. Begin with `courier.py`, then `posting.py` (one attempt), `sender.py`
and `network.py` (how it leaves), `advancing.py` (what controls ask) and `inbox.py`.
`receiver_rules.py` judges a receiver: each rule is one method; `receiver.py` sends and watches,
`effects.py` is what it sees, `sample_events.py` has what is sent.
"""
