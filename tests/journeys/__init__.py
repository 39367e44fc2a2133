"""What a client of the API goes through, over real HTTP."""
