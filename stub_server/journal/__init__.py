"""Floor 7: reads the journal of a world: which requests are meant, how they are shown, what was expected of them."""
