"""Floor 3: scenario files, read and held to the contract."""
