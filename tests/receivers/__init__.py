"""Small shops that receive webhooks, each as a program of its own: one that is right, and the same
with a bug.
"""
