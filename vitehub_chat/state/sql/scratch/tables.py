"""The tables that a step runs on."""

from __future__ import annotations

from vitehub_chat.state.sql.scratch.conversations import ScratchConversations
from vitehub_chat.state.sql.scratch.documents import ScratchDocuments
from vitehub_chat.state.sql.scratch.entries import ScratchEntries
from vitehub_chat.state.sql.scratch.locks import ScratchLocks
from vitehub_chat.state.sql.scratch.rows import ScratchRows
from vitehub_chat.state.sql.scratch.sessions import ScratchSessions
from vitehub_chat.state.sql.scratch.summaries import ScratchSummaries
from vitehub_chat.state.sql.scratch.work import Work


class Scratch:
    """What is known, as the tables of one transaction.

    Whatever a step asks for that is not known raises `Miss`; it is then looked up, and the step
    runs again on another scratch.

    Attributes:
        secret: The key of the store's cursors.
    """

    def __init__(self, work: Work, secret: bytes) -> None:
        self.locks = ScratchLocks(work)
        self.entries = ScratchEntries(work)
        self.conversations = ScratchConversations(work)
        self.sessions = ScratchSessions(work)
        self.rows = ScratchRows(work)
        self.summaries = ScratchSummaries(work)
        self.documents = ScratchDocuments(work)
        self.secret = secret
