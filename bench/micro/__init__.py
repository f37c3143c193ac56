"""What single parts cost, without processes and network."""
