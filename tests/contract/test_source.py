"""Rules for the text of the package that no linter knows."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import attrs
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
CLOCK_AND_ID_MODULES = {"model/clock.py", "model/ids.py"}
CLOCK_AND_ID_CALLS = {
    "datetime.date.today",
    "datetime.datetime.now",
    "datetime.datetime.today",
    "datetime.datetime.utcnow",
    "time.time",
    "time.time_ns",
    "uuid.uuid1",
    "uuid.uuid4",
}
CLOCK_AND_ID_PACKAGES = {"random", "secrets"}
CODE_RUNNERS = {"eval", "exec", "builtins.eval", "builtins.exec"}
OBJECT_LOADERS = {"cloudpickle", "dill", "marshal", "pickle", "shelve"}


@attrs.frozen(kw_only=True)
class Source:
    """One module: its path below the package, text, tree, and what its imported names stand for."""

    name: str
    text: str
    tree: ast.Module
    aliases: dict[str, str]

    def references(self) -> Iterator[tuple[int, str]]:
        """Give line and full dotted name of every use of an imported or builtin name."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Name | ast.Attribute):
                yield node.lineno, self._resolve(node)

    def imports(self) -> Iterator[tuple[int, str]]:
        """Give line and full dotted name of everything imported."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from ((node.lineno, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)

    def _resolve(self, node: ast.expr) -> str:
        if isinstance(node, ast.Attribute):
            return f"{self._resolve(node.value)}.{node.attr}"
        return self.aliases.get(node.id, node.id) if isinstance(node, ast.Name) else ""


def parse(name: str, text: str) -> Source:
    """Parse one module and note what its imports bind."""
    tree = ast.parse(text)
    aliases: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            aliases |= {alias.asname: alias.name for alias in node.names if alias.asname}
        elif isinstance(node, ast.ImportFrom):
            aliases |= {
                alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names
            }
    return Source(name=name, text=text, tree=tree, aliases=aliases)


@pytest.fixture(scope="session")
def sources(repository: Path) -> Sequence[Source]:
    """Give every module of the package."""
    package = repository / "vitehub_chat"
    return [
        parse(path.relative_to(package).as_posix(), path.read_text(encoding="utf-8"))
        for path in sorted(package.rglob("*.py"))
    ]


def test_no_file_is_above_400_lines(sources: Sequence[Source]) -> None:
    sizes = {source.name: len(source.text.splitlines()) for source in sources}
    assert {name: lines for name, lines in sizes.items() if lines > MAX_FILE_LINES} == {}


def test_no_function_is_above_60_lines(sources: Sequence[Source]) -> None:
    long = [
        f"{source.name}:{node.lineno} {node.name}"
        for source in sources
        for node in ast.walk(source.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or node.lineno) - node.lineno >= MAX_FUNCTION_LINES
    ]
    assert long == []


def test_no_exception_is_dropped_without_a_word(sources: Sequence[Source]) -> None:
    dropped = [
        f"{source.name}:{node.lineno}"
        for source in sources
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ExceptHandler) and all(map(is_empty, node.body))
    ]
    assert dropped == []


def test_no_suppress_covers_every_exception(sources: Sequence[Source]) -> None:
    broad = {"Exception", "BaseException"}
    found = [
        f"{source.name}:{node.lineno}"
        for source in sources
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in {"suppress", "contextlib.suppress"}
        and broad & set(map(ast.unparse, node.args))
    ]
    assert found == []


def test_every_todo_has_a_url(sources: Sequence[Source]) -> None:
    found = [
        f"{source.name}:{number}"
        for source in sources
        for number, line in enumerate(source.text.splitlines(), 1)
        if re.search(r"\b(TODO|FIXME|XXX|HACK)\b", line) and "https://" not in line
    ]
    assert found == []


def test_clock_and_ids_are_read_in_their_modules_alone(sources: Sequence[Source]) -> None:
    elsewhere = [source for source in sources if source.name not in CLOCK_AND_ID_MODULES]
    found = [
        f"{source.name}:{line} {name}"
        for source in elsewhere
        for line, name in source.references()
        if name in CLOCK_AND_ID_CALLS
    ]
    assert found + imports_of(elsewhere, CLOCK_AND_ID_PACKAGES) == []


def test_only_the_registry_imports_modules_by_name(sources: Sequence[Source]) -> None:
    found = [
        f"{source.name}:{line} {name}"
        for source in sources
        if source.name != "plugins.py"
        for line, name in source.references()
        if name in {"importlib.import_module", "__import__"}
    ]
    assert found == []


def test_nothing_runs_text_or_loads_objects(sources: Sequence[Source]) -> None:
    found = [
        f"{source.name}:{line} {name}"
        for source in sources
        for line, name in source.references()
        if name in CODE_RUNNERS
    ]
    assert found + imports_of(sources, OBJECT_LOADERS) == []


def is_empty(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Pass) or (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    )


def imports_of(sources: Sequence[Source], packages: set[str]) -> list[str]:
    return [
        f"{source.name}:{line} {name}"
        for source in sources
        for line, name in source.imports()
        if name.partition(".")[0] in packages
    ]
