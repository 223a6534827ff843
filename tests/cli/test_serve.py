"""Serving by the command: a link that works once, and an end with Ctrl-C."""

from __future__ import annotations

import json
import os
import shlex
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.cli.helpers import COMMAND, STATE, Invoke, failure, store
from vitehub_chat.cli.serving import HOW_TO_MAKE_ONE, read_place

pytestmark = pytest.mark.slow
LIMIT_S = 30


@contextmanager
def served(folder: Path, *arguments: str, **environ: str) -> Iterator[tuple[Any, dict[str, str]]]:
    """Run a command that serves, and give its process and what it said of itself."""
    process = subprocess.Popen(
        [COMMAND, *arguments, "--json"],
        cwd=folder,
        env={**os.environ, **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "}\n")
        yield process, json.loads("".join(lines) + "}")
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=LIMIT_S)


@contextmanager
def entered(place: dict[str, str]) -> Iterator[httpx2.Client]:
    """Give a client that opened the link."""
    address, token = place["address"], place["link"].partition("#")[2]
    with httpx2.Client(base_url=address, headers={"origin": address}) as client:
        assert client.post("/open", json={"token": token}).status_code == 200
        yield client


def say(client: httpx2.Client, text: str) -> str:
    message = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": text}]}
    answer = client.post(
        "/api/chat",
        json={"id": "c1", "messages": [message]},
        headers={"accept": "application/json"},
    )
    found: str = answer.json()["text"]
    return found


def test_an_agent_is_talked_to_and_looked_at_until_ctrl_c(folder: Path, support: str) -> None:
    with served(folder, "serve", support) as (process, place):
        assert place["address"].startswith("http://127.0.0.1:")
        with entered(place) as client:
            assert "<title>" in client.get("/").text
            assert say(client, "Hello") == "You said: Hello"
            (item,) = client.get("/api/sessions").json()["items"]
            assert (item["thread"], item["message_count"]) == ("c1", 2)
    assert process.returncode == 0


def test_an_agent_without_a_state_is_served_from_memory(folder: Path) -> None:
    (folder / "plain.toml").write_text(
        'name = "plain"\ndriver = "echo"\n[[capabilities]]\nuse = "chat"\n'
    )
    with served(folder, "serve", "plain.toml") as (_, place), entered(place) as client:
        assert say(client, "Hello") == "You said: Hello"
        assert len(client.get("/api/sessions").json()["items"]) == 1
    assert [path.name for path in folder.iterdir()] == ["plain.toml"]


def test_a_bare_state_is_looked_at_and_no_turn_is_run(folder: Path, support: str) -> None:
    assert support
    store("Hello")
    arguments = ["console", "--state", STATE, "--agent", "support"]
    with served(folder, *arguments) as (process, place), entered(place) as client:
        (item,) = client.get("/api/sessions").json()["items"]
        assert item["thread"] == "cli"
        assert client.post("/api/chat", json={}).status_code == 404
    assert process.returncode == 0


def test_a_state_that_is_not_there_is_4(folder: Path, invoke: Invoke) -> None:
    result = invoke("console", "--state", STATE, "--agent", "support", "--json")
    assert (result.exit_code, failure(result)["code"]) == (4, "not_found")
    assert list(folder.iterdir()) == []


def test_open_goes_through_a_file_that_only_the_user_can_read(folder: Path, support: str) -> None:
    os.mkfifo(folder / "seen")
    browser = folder / "browser"
    browser.write_text(
        '#!/bin/sh\npage="${1#file://}"\n(echo "$@"; ls -l "$page"; cat "$page") > seen\n'
    )
    browser.chmod(browser.stat().st_mode | stat.S_IXUSR)
    with served(folder, "serve", support, "--open", BROWSER=str(browser)) as (_, place):
        assert set(place) == {"address"}
        command, facts, page = (folder / "seen").read_text().splitlines()
    assert "#" not in command
    assert facts.startswith("-rw-------")
    assert f"{place['address']}/open#" in page
    assert not Path(command.removeprefix("file://")).exists()


@pytest.mark.parametrize("given", [[], ["--allow-host", "box"], ["--token-file", "token"]])
def test_an_address_that_others_reach_needs_a_name_and_a_secret(
    folder: Path, support: str, invoke: Invoke, given: list[str]
) -> None:
    (folder / "token").write_text("t" * 43)
    result = invoke("serve", support, "--host", "0.0.0.0", *given, "--json")  # noqa: S104
    assert (result.exit_code, failure(result)["code"]) == (2, "usage")


@pytest.mark.parametrize(
    "token",
    [
        "",
        "t" * 42,
        "a1" * 31 + "a",
        "A1" * 22,
        "t" * 30 + " " + "t" * 30,
        "t" * 43 + "=",
        "ü" * 43,
        "t" * 42 + "\u0663",
        "t" * 43 + "\n" + "t" * 43,
    ],
)
def test_a_secret_that_cannot_carry_32_random_bytes_is_refused(
    folder: Path, support: str, invoke: Invoke, token: str
) -> None:
    (folder / "token").write_text(token, encoding="utf-8")
    result = invoke("serve", support, "--token-file", "token", "--json")
    error = failure(result)
    assert (result.exit_code, error["path"]) == (3, "--token-file")
    assert "64 hex digits" in error["message"]
    assert "secrets.token_urlsafe(32)" in error["hint"]
    assert token == "" or token not in result.stderr


@pytest.mark.parametrize(
    "token",
    ["a1" * 32, "A1" * 32, "t" * 43, "-_" * 30, "mYc1oV8Ga0xq2Zr_dT6kWl-9sHfJ3uBn4EeP7iQyRxA"],
)
def test_a_secret_of_hex_or_base64url_is_taken(folder: Path, token: str) -> None:
    (folder / "token").write_text(f"{token}\n")
    place = read_place("127.0.0.1", 0, [], folder / "token", opens=False)
    assert place.token == token


def test_the_command_of_the_hint_makes_a_secret_that_is_taken(folder: Path) -> None:
    python, *arguments = shlex.split(HOW_TO_MAKE_ONE)
    assert python == "python"
    made = subprocess.run([sys.executable, *arguments], capture_output=True, check=True)
    (folder / "token").write_bytes(made.stdout)
    place = read_place("127.0.0.1", 0, [], folder / "token", opens=False)
    assert place.token == made.stdout.decode().strip()


def test_a_secret_of_ones_own_is_not_printed(folder: Path, support: str) -> None:
    (folder / "token").write_text("t" * 43 + "\n")
    arguments = ["serve", support, "--token-file", "token", "--allow-host", "box.example"]
    with served(folder, *arguments) as (process, place):
        assert place["link"] == f"{place['address']}/open"
        headers = {"host": "box.example", "origin": "https://box.example"}
        body = {"token": "t" * 43}
        answer = httpx2.post(f"{place['address']}/open", json=body, headers=headers)
        assert answer.status_code == 200
    assert process.returncode == 0


def test_a_port_that_is_taken_is_said_to_be_so(folder: Path, support: str, invoke: Invoke) -> None:
    with served(folder, "serve", support) as (_, place):
        port = place["address"].rpartition(":")[2]
        result = invoke("serve", support, "--port", port, "--json")
    assert (result.exit_code, failure(result)["path"]) == (3, "--port")


def test_people_are_told_the_link(folder: Path, support: str) -> None:
    process = subprocess.Popen(
        [COMMAND, "serve", support],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    _, told = process.communicate(timeout=LIMIT_S)
    assert line.startswith("Open http://127.0.0.1:")
    assert "Ctrl-C" in told
    assert process.returncode == 0
