"""Scenario files."""
class ScenarioError(Exception):
    """A scenario cannot be used."""
