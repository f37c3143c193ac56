"""The `grep` tool."""
