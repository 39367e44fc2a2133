"""Floor 3: draws what a seeded world contains from random streams: people, projects, prices, times and outcomes."""
