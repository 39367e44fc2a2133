"""Floor 3: what has happened, and how the world is told."""
