"""The rules of the service as pure functions: no HTTP, YAML, store, clock or randomness inside."""
