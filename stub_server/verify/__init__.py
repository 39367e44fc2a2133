"""Floor 12: compares a running backend with the contract, and with this sandbox's own behaviour."""
