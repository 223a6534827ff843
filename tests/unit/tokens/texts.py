"""Texts in which every kind of character meets every other."""

from __future__ import annotations

from hypothesis import strategies as st

TELLING = "aZ9 \t\n\x1c\u00a0\u3000.+/=_-中가Ａ\U00020000éЖ\u2014\U0001f600\ud800"
"""Characters of every row of the table, and those that look like another row."""

TEXTS = st.one_of(
    st.text(TELLING),
    st.text("aB9+/=_-.", min_size=15, max_size=60),
    st.text(" \n\t", max_size=60),
    st.text(),
)
