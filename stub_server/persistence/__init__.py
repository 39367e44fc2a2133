"""Floor 6: what outlives the process. Sandboxes live in memory; their states and steps are stored in SQL."""
