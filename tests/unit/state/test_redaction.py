"""Redaction: what is left of a URL that may be shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitehub_chat.state.redaction import redact_url


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("libsql://db.example.io", "libsql://db.example.io"),
        (
            "https://db.example.io:8080/base/path?tls=0",
            "https://db.example.io:8080/base/path?tls=0",
        ),
        (
            "postgres://ann:pw@db:5432/chat?sslmode=require",
            "postgres://***@db:5432/chat?sslmode=require",
        ),
        ("libsql://pw@db", "libsql://***@db"),
        ("libsql://a:p@w@db", "libsql://***@db"),
        ("libsql://a:p/w@db/x", "libsql://***@db/x"),
        ("libsql://a:p?w@db/x", "libsql://***"),
        ("libsql://a:p#w@db/x", "libsql://***"),
        ("libsql://db?authToken=t&tls=0", "libsql://db?authToken=***&tls=0"),
        ("libsql://db?auth%54oken=t;x=y", "libsql://db?auth%54oken=***&x=***"),
        ("libsql://db?t", "libsql://db?***"),
        ("libsql://db?token=a@b", "libsql://***"),
        ("libsql://db#t", "libsql://db#***"),
        ("LIBSQL://pw@db\nx", "LIBSQL://***@db\nx"),
        ("//a:pw@db", "//***@db"),
        ("a:pw@db", "***@db"),
        ("file:data/chat@home.db", "file:data/chat@home.db"),
        ("file:x.db?mode=ro&key=k@y", "file:x.db?mode=ro&key=***"),
        ("file://a:pw@host/x.db", "file://***@host/x.db"),
        ("./chat@home.db", "./chat@home.db"),
        ("C:\\chat@home.db", "C:\\chat@home.db"),
        ("memory:shop", "memory:shop"),
        ("", ""),
    ],
)
def test_what_may_be_secret_is_left_out(url: str, shown: str) -> None:
    assert redact_url(url) == shown


characters = st.characters(codec="utf-8", exclude_characters="~")


@given(before=st.text(characters), after=st.text(characters))
def test_a_password_never_shows_whatever_is_around_it(before: str, after: str) -> None:
    assert "~" not in redact_url(f"libsql://{before}~{after}@db.example.io")


@given(name=st.text(characters), before=st.text(characters), after=st.text(characters))
def test_a_token_never_shows_whatever_is_around_it(name: str, before: str, after: str) -> None:
    assert "~" not in redact_url(
        f"https://db.example.io?{name}=&token={before.replace('&', '')}~{after}"
    )


@given(st.text())
def test_any_text_can_be_redacted_and_once_is_enough(text: str) -> None:
    shown = redact_url(f"https://{text}")
    assert redact_url(shown) == shown
