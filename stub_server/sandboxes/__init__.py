"""Floor 6: the sandboxes of one server: made from scenarios, found by name, reset and forgotten."""
