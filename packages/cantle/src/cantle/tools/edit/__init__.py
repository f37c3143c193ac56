"""The `edit` tool."""
