"""Documents that cannot be read are told by name, and never taken for absent ones."""

from __future__ import annotations

import pytest

from vitehub_chat.errors import StateError
from vitehub_chat.state.document_codec import (
    decode_checkpoints,
    decode_plan,
    encode_plan,
)
from vitehub_chat.state.providers.memory import open_memory
from vitehub_chat.state.records import DocumentKind, DocumentRecord
from vitehub_chat.state.tables import Transaction
from vitehub_chat.testing.checks.material import append, new_key
from vitehub_chat.testing.checks.plans import PLAN
from vitehub_chat.testing.clock import FakeClock

BAD = ["", "{", "[]", "null", '{"v":2}', '{"v":1}', '{"v":1,"checkpoints":[{}],"entries":[[1]]}']


def record(kind: DocumentKind, body: str) -> DocumentRecord:
    return DocumentRecord(home="h", kind=kind, name="n", body=body, created_at=0)


@pytest.mark.parametrize("body", BAD)
def test_a_plan_that_cannot_be_read_is_corrupt(body: str) -> None:
    with pytest.raises(StateError, match="plan 'n'") as caught:
        decode_plan(record("plan", body))
    assert caught.value.code == "corrupt"


@pytest.mark.parametrize("body", BAD)
def test_checkpoints_that_cannot_be_read_are_corrupt(body: str) -> None:
    with pytest.raises(StateError) as caught:
        decode_checkpoints(record("checkpoints", body))
    assert caught.value.code == "corrupt"


def test_a_plan_has_no_text_but_ids() -> None:
    assert "message" not in encode_plan(PLAN)


@pytest.mark.parametrize("body", BAD)
async def test_a_summary_or_value_that_cannot_be_read_is_corrupt(body: str) -> None:
    key = new_key()

    def break_it(tx: Transaction) -> None:
        for kind, name in (("rolling", "1"), ("value", "k")):
            found = DocumentRecord(
                home=key.encode(),
                kind=kind,  # type: ignore[arg-type]  # both are
                name=name,
                session_key=1,
                body=body,
                created_at=0,
            )
            tx.documents.put(found)

    async with open_memory("memory:", clock=FakeClock()) as state:
        await append(state, key, "m1")
        await state.run_write(break_it)
        with pytest.raises(StateError) as caught:
            await state.summaries.get_rolling(key, session_id=None)
        assert caught.value.code == "corrupt"


@pytest.mark.parametrize("body", ["", "{", "[" * 100_000])
async def test_a_value_that_is_no_json_is_corrupt(body: str) -> None:
    scope = new_key()

    def break_it(tx: Transaction) -> None:
        tx.documents.put(
            DocumentRecord(home=scope.encode(), kind="value", name="k", body=body, created_at=0)
        )

    async with open_memory("memory:", clock=FakeClock()) as state:
        await state.run_write(break_it)
        for call in (state.values.get, state.values.get_list, state.values.pop_from_list):
            with pytest.raises(StateError, match="'k'") as caught:
                await call("k", scope=scope)
            assert caught.value.code == "corrupt"
        await state.values.set("k", value=1, scope=scope)
        assert await state.values.get("k", scope=scope) == 1
