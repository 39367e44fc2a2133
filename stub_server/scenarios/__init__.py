"""Floor 3: scenario files, read and checked against the contract."""
