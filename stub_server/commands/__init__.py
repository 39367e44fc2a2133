"""Floor 12: the verbs that talk to a running server over HTTP."""
