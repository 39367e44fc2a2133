"""`python -m tests.size`: how much there is to understand, room by room, and which way a
request goes.
"""
