"""The column of Vertex AI, asked with an API key."""

from packages.ai.tests.conformance.column import Column
from packages.ai.tests.conformance.columns.google_generative_ai import FIELDS

COLUMN = Column(api="google-vertex", **FIELDS)
