"""Figures that tests measure (`record_property("figure", TEXT)`), printed at the end of a run."""

import pytest

__all__ = ["pytest_terminal_summary"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line `figure: TEXT` for each, which `tools/acceptance` keeps."""
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties:
            if name == "figure":
                terminalreporter.write_line(f"figure: {value}")
