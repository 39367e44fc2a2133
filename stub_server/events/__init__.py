"""What an event is, and how its deliveries are signed and sent.

Imports the kernel and the domain. Begin with `log.py` (events and their payloads), then `sender.py` (one attempt);
`network.py` has the addresses that are allowed and the connections, `raw.py` what certification sends.
"""
