"""Floor 1: where records live. It knows tables and keys, and nothing of HTTP or of the rules."""
