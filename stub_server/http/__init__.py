"""Floor 9: HTTP. No other floor imports Connexion or ASGI."""
