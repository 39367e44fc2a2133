"""Floor 3: rules by which requests fail or wait, as a user of the sandbox asks for."""
