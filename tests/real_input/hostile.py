"""Hostile strings: what ids, texts and metadata are made of on a bad day."""

from __future__ import annotations

import unicodedata

from vitehub_chat.model.keys import MAX_ID_LENGTH

OWN = (
    "%",
    "_",
    "a_b",
    "a%b",
    "'",
    '"',
    "''",
    "`",
    "'; DROP TABLE rows; --",
    "a:b",
    "1:a",
    "-",
    "a/b",
    "../../etc/passwd",
    "\\",
    "\\x00",
    "\\u0000",
    "a\x00b",
    "\x00",
    "a\nb",
    "a\r\n",
    "\x7f",
    "\x85",
    "\u2028",
    "\u200b",
    "\ufeff",
    "\u202eabc",
    " a ",
    " ",
    "\u3000",
    "e\u0301",
    "\u00e9",
    "E\u0301",
    "\u1e9e",
    "ss",
    "STRASSE",
    "stra\u00dfe",
    "\ufb01",
    "fi",
    "\u212b",
    "\u00c5",
    "😀",
    "👨\u200d👩\u200d👧\u200d👦",
    "🇩🇪",
    "\U0010ffff",
    "\uffff",
    "\ud800",
    "a\udc97b",
    "\ud83d\ude00",
    "\ude00\ud83d",
    "x" * MAX_ID_LENGTH,
    "é" * MAX_ID_LENGTH,
    "😀" * MAX_ID_LENGTH,
    "x" * (MAX_ID_LENGTH + 1),
    "y" * 100_000,
    "null",
    "None",
    "true",
    "0",
    "-1",
    "1e309",
    "NaN",
    "undefined",
    "{}",
    "[]",
    '{"v":1}',
    "__proto__",
    "constructor",
    "id",
    "role",
    "sessionId",
    "session.id",
    "$ne",
    ":now",
    "?1",
    "{0}",
    "{prefix}",
    "%s",
    "${jndi:ldap://127.0.0.1/a}",
    "<script>alert(1)</script>",
)
"""Our own list; with what others have found it is `everything`."""


def everything(found: list[str]) -> list[str]:
    """Return our own strings and those that others have found, each once."""
    return list(dict.fromkeys([*OWN, *found]))


def cleaned(text: str) -> str:
    """Return a text as it is stored: without halves of surrogate pairs that stand alone."""
    joined = text.encode("utf-16-le", "surrogatepass")
    return joined.decode("utf-16-le", "replace")


def is_id(text: str) -> bool:
    """Tell whether a text may be an id."""
    kinds = {unicodedata.category(character) for character in text}
    return 0 < len(text) <= MAX_ID_LENGTH and not kinds & {"Cc", "Cs"}


def is_visible(text: str) -> bool:
    """Tell whether a text has something to see."""
    unseen = {"Cc", "Cf", "Zs", "Zl", "Zp"}
    return any(unicodedata.category(character) not in unseen for character in text)
