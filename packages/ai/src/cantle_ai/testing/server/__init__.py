"""A strict scripted server on the loopback: :class:`cantle_ai.testing.server.server.StrictServer`.

`python -m cantle_ai.testing.server SCRIPT` runs it as a process of its own.
"""
