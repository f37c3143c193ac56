"""The `read` tool."""
