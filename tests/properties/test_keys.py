"""Properties of keys and ids."""

from __future__ import annotations

import contextlib
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitehub_chat.errors import InputError
from vitehub_chat.model.keys import (
    MAX_ID_LENGTH,
    ConversationKey,
    check_id,
    decode_key,
    encode_key,
)

# Characters that a careless encoding would mix up come often.
PARTS = st.none() | st.text(st.sampled_from("-:0123 %_") | st.characters(), max_size=6)
LISTS = st.lists(PARTS, max_size=5)


@given(LISTS)
def test_decoding_gives_the_parts_that_were_encoded(parts: list[str | None]) -> None:
    assert decode_key(encode_key(*parts)) == parts


@given(LISTS, LISTS)
def test_different_parts_have_different_texts(
    one: list[str | None], other: list[str | None]
) -> None:
    assert (encode_key(*one) == encode_key(*other)) is (one == other)


@given(PARTS, PARTS, PARTS, PARTS)
def test_a_conversation_key_comes_back(
    tenant: str | None, agent: str | None, channel: str | None, thread: str | None
) -> None:
    key = ConversationKey(tenant, agent, channel, thread)
    assert ConversationKey.decode(key.encode()) == key
    assert key.encode().startswith(key.encode_channel())


@given(st.text(max_size=600))
def test_an_id_is_taken_as_it_is_or_refused(value: str) -> None:
    is_clean = all(unicodedata.category(character) not in {"Cc", "Cs"} for character in value)
    if is_clean and len(value) <= MAX_ID_LENGTH:
        assert check_id(value, "id") == value
        return
    with pytest.raises(InputError) as caught:
        check_id(value, "id")
    assert caught.value.path == "id"


@given(st.text(st.sampled_from("-:0123\u0663+_ a"), max_size=12))
def test_a_text_that_is_no_key_is_refused_at_once(text: str) -> None:
    with contextlib.suppress(InputError):
        assert encode_key(*decode_key(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        " -5:-",
        "-5:-",
        "+1:a",
        "1_0:aaaaaaaaaa",
        "01:a",
        "9:a",
        "5:",
        ":",
        "a",
        "\u0663:aaa",
        " 1:a",
    ],
)
def test_lengths_are_digits_alone_and_within_the_text(text: str) -> None:
    with pytest.raises(InputError, match="is no encoded key"):
        ConversationKey.decode(f"{text}---")
