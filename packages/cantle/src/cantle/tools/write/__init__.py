"""The `write` tool."""
