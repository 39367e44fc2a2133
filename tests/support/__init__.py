"""Helpers of the tests that are no fixtures."""
