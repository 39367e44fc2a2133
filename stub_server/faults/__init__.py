"""Fault rules: requests fail, wait or lose their answer on demand, and deliveries come late, twice, forged or never.

Floor 3: imports the kernel. `http/fault_injection.py` and `engine/attempts.py` ask the rules of a sandbox for the
effect on a request and on a delivery, and apply it. Begin with `Faults` in `fault_rules.py`.
"""
