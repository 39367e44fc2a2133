"""Servers that share a store."""
