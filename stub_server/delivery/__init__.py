"""Floor 5: deliveries that leave the server by themselves, when they are due and while a clock advances."""
