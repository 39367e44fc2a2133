"""Floor 5: fills a world with a past that actors have lived through the engine."""
