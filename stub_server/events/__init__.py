"""What an event is, and how a message about it reaches a receiver: signed, sent to an allowed address, answered.

Imports the kernel and the domain. Begin with `log.py` (events and their payloads), then `sender.py` (one attempt) and
`signing.py`; `network.py` has the allowed addresses and the connections.
"""
