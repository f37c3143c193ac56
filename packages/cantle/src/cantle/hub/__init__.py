"""The session hub: an agent, a session file and a model runtime, joined by parts with one duty each."""
