"""Floor 1: the OpenAPI documents as the server reads them. It knows nothing of the store."""
