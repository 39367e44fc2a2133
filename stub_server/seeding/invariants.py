"""Laws."""
def check(sandbox, seeded): return []
