"""The `find` tool."""
