"""Floor 0: basics that every other floor uses. It imports the standard library only."""
