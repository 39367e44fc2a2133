"""Floor 5: judges a receiver of webhooks by what it answers and by what it does to the API."""
