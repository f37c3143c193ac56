"""One module for each wire protocol, loaded when a request first speaks it. They know nothing of each other."""
