"""Floor 2: the rules of the service as pure functions: no HTTP, YAML, store, clock or randomness inside."""
