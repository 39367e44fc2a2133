"""Floor 3: rules by which requests fail or wait on demand."""
