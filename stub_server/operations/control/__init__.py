"""The control surface /_sandbox: what a test does to the world around the API."""
