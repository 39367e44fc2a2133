"""A second model of the service, written from the design of the domain alone, and random lives
against it.
"""
