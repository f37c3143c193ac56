"""Makes the JSON schema of `models.json` and the tables of its page: `python -m tools.models_schema --help`."""
