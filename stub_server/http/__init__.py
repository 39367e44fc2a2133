"""Floor 9: the only floor that knows Connexion and ASGI."""
