"""Floor 3: what a seeded world is made of, drawn from random streams: people, niches, prices, rhythm, fates."""
