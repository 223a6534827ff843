"""What each way into the package loads: its own dependencies, and no others."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

WATCHED = {
    "aiohttp",
    "attrs",
    "click",
    "httpx2",
    "libsql_client",
    "opentelemetry",
    "psycopg",
    "pydantic",
    "pydantic_ai",
    "pytest",
    "rich",
    "starlette",
    "structlog",
    "tiktoken",
    "uvicorn",
    "yaml",
}
"""What this package depends on, by itself or with an extra."""

REPORT = """
import json, sys
before = set(sys.modules)
{script}
loaded = sorted(set(sys.modules) - before)
ours = [name for name in loaded if name.partition(".")[0] == "vitehub_chat"]
print()
print(json.dumps([sorted({{name.partition(".")[0] for name in loaded}}), ours]))
"""

VERSION = """
sys.argv = ["vitehub-chat", "--version"]
import vitehub_chat.cli.entry
try:
    vitehub_chat.cli.entry.main()
except SystemExit:
    pass
"""


def loads(script: str) -> tuple[set[str], list[str]]:
    """Return which of the watched packages a script loads, and which modules of ours."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", REPORT.format(script=script)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    packages, ours = json.loads(done.stdout.splitlines()[-1])
    return WATCHED & set(packages), ours


def test_importing_the_package_loads_one_module_of_ours() -> None:
    assert loads("import vitehub_chat") == (set(), ["vitehub_chat"])


@pytest.mark.parametrize(
    ("script", "packages"),
    [
        ("from vitehub_chat import chat; chat()", {"attrs", "pydantic"}),
        ("from vitehub_chat import define_agent; define_agent(name='a')", {"attrs", "pydantic"}),
        ("from vitehub_chat import open_agent_state; open_agent_state('memory:')", {"attrs"}),
        ("from vitehub_chat import open_agent_state; open_agent_state('file:a')", {"attrs"}),
        ("import vitehub_chat.state.providers.libsql", set()),
        ("import vitehub_chat.state.providers.postgres", set()),
        ("import vitehub_chat.agent.drivers.pydantic_ai", {"attrs", "pydantic"}),
        ("import vitehub_chat.agent.drivers.echo", {"attrs"}),
        ("import vitehub_chat.channels", set()),
        ("import vitehub_chat.web", set()),
        ("import vitehub_chat.web.routes", {"attrs", "pydantic", "starlette"}),
        ("import vitehub_chat.integrations.tiktoken", {"attrs"}),
        ("import vitehub_chat.integrations.otel", {"attrs", "opentelemetry"}),
        (VERSION, {"click"}),
    ],
)
def test_a_way_in_loads_what_it_needs_and_nothing_else(script: str, packages: set[str]) -> None:
    assert loads(script)[0] == packages
