"""What is done under a `ForkSafeLock`, for which event loops and forks of the process wait."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

SLOW_CALLS = {
    *("sleep", "wait", "result", "join", "acquire", "to_thread", "run", "run_until_complete"),
    *("execute", "executemany", "executescript", "commit", "connect", "send", "recv", "request"),
    *("open", "read_text", "write_text", "read_bytes", "write_bytes", "unlink", "mkdir", "fsync"),
    *("import_module", "import_path", "open_agent_state", "input", "fork"),
}
SLOW_NODES = (
    *(ast.Await, ast.AsyncWith, ast.AsyncFor),
    *(ast.Import, ast.ImportFrom),
)
YIELDS = (ast.Yield, ast.YieldFrom)
LONG_LOCKS = {"agent/runtime.py": {"_building"}}
"""Those that are held while something is imported, and never taken on an event loop."""
JOURNALS = {("state/memory/store.py", "commit")}
"""What has the name of something slow and only works on memory."""


class Module:
    """One module, and the locks that it makes."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self._tree = ast.parse(text)
        self.locks = set(self._made()) - LONG_LOCKS.get(name, set())
        self._functions: dict[str, list[ast.FunctionDef]] = {}
        for node in ast.walk(self._tree):
            if isinstance(node, ast.FunctionDef):
                self._functions.setdefault(node.name, []).append(node)

    def holds(self) -> Iterator[ast.With]:
        """Give what is done under its locks."""
        for node in ast.walk(self._tree):
            if isinstance(node, ast.With) and any(
                last_name(item.context_expr) in self.locks for item in node.items
            ):
                yield node

    def slow_under_locks(self) -> list[str]:
        """Return what waits, or may, there and in what is called of this module."""
        found = {
            f"{self.name}:{line} {what}"
            for held in self.holds()
            for line, what in (*self._slow_in(held.body, set()), *_yields_in(held))
        }
        return sorted(found)

    def _made(self) -> Iterator[str]:
        for node in ast.walk(self._tree):
            if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
                continue
            names = [last_name(each) for each in ast.walk(node.value)]
            if "ForkSafeLock" in names and "ref" not in names:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                yield from map(last_name, targets)

    def _slow_in(self, body: Sequence[ast.stmt], seen: set[str]) -> Iterator[tuple[int, str]]:
        for node in (each for statement in body for each in ast.walk(statement)):
            if isinstance(node, SLOW_NODES):
                yield node.lineno, type(node).__name__
            if not isinstance(node, ast.Call):
                continue
            called = last_name(node.func)
            if called in SLOW_CALLS and (self.name, called) not in JOURNALS:
                yield node.lineno, called
            elif called not in seen:
                seen.add(called)
                for function in self._functions.get(called, ()):
                    yield from self._slow_in(function.body, seen)


def _yields_in(held: ast.With) -> Iterator[tuple[int, str]]:
    """Give where whoever iterates would hold the lock; what is called is iterated within."""
    for node in ast.walk(held):
        if isinstance(node, YIELDS):
            yield node.lineno, type(node).__name__


def last_name(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


@pytest.fixture(scope="module")
def modules(repository: Path) -> Sequence[Module]:
    package = repository / "vitehub_chat"
    found = [
        Module(path.relative_to(package).as_posix(), path.read_text(encoding="utf-8"))
        for path in sorted(package.rglob("*.py"))
    ]
    return [module for module in found if module.locks and module.name != "model/forking.py"]


def test_nothing_waits_while_it_holds_a_lock_that_loops_share(modules: Sequence[Module]) -> None:
    assert [found for module in modules for found in module.slow_under_locks()] == []


def test_every_lock_that_loops_share_is_held_by_a_with_block(modules: Sequence[Module]) -> None:
    assert [module.name for module in modules if not list(module.holds())] == []


def test_only_workers_of_sqlite_have_locks_that_a_fork_ignores(repository: Path) -> None:
    package = repository / "vitehub_chat"
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if "threading.Lock()" in path.read_text(encoding="utf-8")
    }
    # Those of a worker are free while it is paused, which a fork waits for.
    others = {name for name in found if not name.startswith("state/providers/sqlite/")}
    assert others == {"testing/clock.py"}


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("await other()", "Await"),
        ("time.sleep(1)", "sleep"),
        ("path.open()", "open"),
        ("connection.execute('select 1')", "execute"),
        ("import json", "Import"),
        ("self._load()", "read_text"),
        ("yield 1", "Yield"),
        ("self._count += 1", None),
        ("loop.create_task(self._later())", None),
    ],
)
def test_what_waits_under_a_lock_is_found(line: str, found: str | None) -> None:
    text = f"""
class Shared:
    def __init__(self):
        self._lock = ForkSafeLock()
    async def use(self):
        with self._lock:
            {line}
    def _load(self):
        return self._path.read_text()
    async def _later(self):
        await other()
"""
    named = [each.rpartition(" ")[2] for each in Module("shared.py", text).slow_under_locks()]
    assert named == ([] if found is None else [found])
