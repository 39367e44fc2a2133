"""Floor 7: what every operation is given and answers with: the call, its lists and its replies."""
