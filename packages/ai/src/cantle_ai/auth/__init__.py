"""Where keys come from: configured values that are resolved when they are needed, and stored credentials."""
