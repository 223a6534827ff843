"""The application of the how-to answers as the page says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.examples.test_documents import ROOT, read
from tests.web.site import said, turn


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Give the names of the application."""
    monkeypatch.chdir(tmp_path)
    code = next(read(ROOT / "docs" / "how-to" / "web.md")).code
    names: dict[str, Any] = {}
    exec(compile(code, "web.py", "exec"), names)  # noqa: S102  our own document
    return names


async def test_the_application_of_the_page_answers_its_users(page: dict[str, Any]) -> None:
    app = page["app"]
    transport = httpx2.ASGITransport(app=app)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client,
    ):
        url, ada = "/api/chat", {"authorization": "Bearer token-of-ada"}
        bob = {"authorization": "Bearer token-of-bob"}
        answered = await client.post(url, json=turn(), headers=ada)
        assert "You said: Hello" in answered.text
        more = {"id": "c1", "messages": [said("m2", "Again")]}
        assert (await client.post(url, json=more, headers=ada)).status_code == 200
        history = await client.get(f"{url}/history?id=c1", headers=ada)
        assert len(history.json()["items"]) == 4
        assert (await client.get(f"{url}/history?id=c1", headers=bob)).status_code == 404
        assert (await client.post(url, json=turn())).status_code == 401
