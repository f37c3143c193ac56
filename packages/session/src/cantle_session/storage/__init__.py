"""Where a session's lines are kept: the port, and what stands behind it."""
