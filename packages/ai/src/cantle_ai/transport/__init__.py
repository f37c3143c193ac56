"""The way to the network: a port (`port`), and the implementation used by default (`urllib3_thread`)."""
