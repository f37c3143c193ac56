"""The `ls` tool."""
