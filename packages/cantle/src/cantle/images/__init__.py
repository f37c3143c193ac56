"""Images: what they are, whether a model can be shown them, and how they are made to fit."""
