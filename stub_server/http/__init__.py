"""Floor 5: the only floor that knows Connexion and ASGI."""
