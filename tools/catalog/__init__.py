"""Makes the catalog's files from facts about models: `python -m tools.catalog --help`."""
