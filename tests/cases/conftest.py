"""Cases: `pytest tests/cases --cases-dir DIR` runs any folder of files of this form."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases.kinds import DATA, KINDS, Folder, read_folder

_FOLDER = pytest.StashKey[Folder]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that names another folder of cases."""
    parser.addoption("--cases-dir", type=Path, metavar="DIR", help="a folder of files of cases")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one test per case and state."""
    if "case" not in metafunc.fixturenames:
        return
    folder = read_folder(metafunc.config.getoption("--cases-dir", default=None) or DATA)
    metafunc.config.stash[_FOLDER] = folder
    pairs = [(case, state) for case in folder.cases for state in KINDS[case.kind].states]
    ids = [f"{case.kind}-{case.id}-{state or 'stateless'}" for case, state in pairs]
    metafunc.parametrize(("case", "state"), pairs, ids=ids)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List what was left out, for want of a feature."""
    folder = terminalreporter.config.stash.get(_FOLDER, None)
    if folder is not None and folder.left_out:
        terminalreporter.section("cases that cannot be run yet")
        terminalreporter.write_line("\n".join(folder.left_out))
