"""Floor 1: reads, checks and compiles the OpenAPI documents. It does not import the store."""
