"""The chat box of the examples in a page, against the server of the examples."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.streams.npm import install_clients, run_node_in
from tests.web.serving import serving

pytestmark = pytest.mark.service

HERE = Path(__file__).parent


def load_app(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location("front_end_server", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.app


def test_a_front_end_with_use_chat_works_unchanged(repository: Path, tmp_path: Path) -> None:
    example, clients = repository / "examples" / "front_end", install_clients()
    (tmp_path / "node_modules").symlink_to(clients / "node_modules")
    shutil.copy(clients / "package.json", tmp_path)
    shutil.copy(example / "chat_box.mjs", tmp_path)
    with serving(load_app(example / "server.py")) as address:
        seen = run_node_in(tmp_path, HERE / "front_end.mjs", f"{address}/api/chat")
    assert seen["sent"] == seen["again"] == ["Hello", "You said: Hello"]
    assert seen["located"]["texts"][2:] == ["Where am I?", "You are in Rome."]
    assert seen["located"]["asked"] == 1
    assert (seen["resumed"], seen["alert"]) == (True, None)
    assert seen["reloaded"]["texts"][4] == "Count slowly"
    assert seen["reloaded"]["isStopped"]
