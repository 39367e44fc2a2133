"""Floor 6: the worlds of one server: made from scenarios, found by name, reset and forgotten."""
