"""Floor 8: one module per tag, one plain function per operationId: (call, path ids, query, body) -> Reply."""
