"""Measurements: next to the reference (`bench/run.py`), and of single parts (`bench/micro/run.py`)."""
