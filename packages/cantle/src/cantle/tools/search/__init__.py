"""Searching files: one walk for every search, and two ways to read what it finds, with one answer."""
