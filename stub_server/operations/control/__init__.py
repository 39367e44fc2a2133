"""The control surface `/_sandbox`: operations with which tests control a sandbox, one module for
each tag.

Begin with `sandbox_orders.py`, which plays payer and bank, and `sandbox_clock.py`, which lets time
pass.
"""
