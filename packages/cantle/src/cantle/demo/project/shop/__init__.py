"""A till for a very small shop."""
