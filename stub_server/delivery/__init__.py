"""Deliveries: sends what is due, advances the clock past deliveries, and has the inbox, a receiver of one's own.

Imports the engine and below; nothing of it is state. Begin with `courier.py` (when to send), then `posting.py` (one
attempt and its step), `advancing.py` (clock calls that wait for receivers) and `inbox.py`.
"""
