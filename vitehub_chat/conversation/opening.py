"""Opening: making the messages of a granted run durable, before its driver is called."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from vitehub_chat.conversation.continuation import Continuation, read_before_answer
from vitehub_chat.conversation.control import TurnControl
from vitehub_chat.conversation.selecting import Draft, window_request
from vitehub_chat.conversation.setting import RunSetting, write_surely
from vitehub_chat.state.context import StateContext
from vitehub_chat.state.values import NewRow, Recorded, SessionRequest, WindowRequest


@attrs.frozen(kw_only=True)
class Opening:
    """The first write of one granted run.

    Attributes:
        ticket_id: The name of the run.
        context: What it writes under.
    """

    setting: RunSetting
    ticket_id: str
    control: TurnControl
    context: StateContext

    async def record(
        self,
        draft: Draft,
        *,
        rows: Sequence[NewRow],
        asked: SessionRequest,
        continued: Continuation | None,
    ) -> Recorded:
        """Store what a turn is about and read the rows that it may see.

        An answer that goes on is stored in its place, as pending; what it may see comes before it.
        Without a state only the entries leave the queue.

        Raises:
            NotFoundError: There is no message to replace.
            StateError: The state failed; see its subclass for what is written.
        """
        state, window = self.setting.state, window_request(draft, self.setting.clock.now())
        if state is None:
            return await self._write(())
        if continued is None:
            return await self._write(
                rows, session=asked, window=window, replaces=draft.request.replaces
            )
        # First what may fail without a trace: what is recorded cannot be given back.
        _, before = await read_before_answer(state, continued, window)
        recorded = await self._write(continued.to_record, session=continued.session)
        return attrs.evolve(recorded, window=before)

    async def _write(
        self,
        rows: Sequence[NewRow],
        *,
        session: SessionRequest | None = None,
        window: WindowRequest | None = None,
        replaces: str | None = None,
    ) -> Recorded:
        record = self.setting.turns.record
        return await write_surely(
            lambda: record(
                self.ticket_id,
                rows=rows,
                session=session,
                window=window,
                replaces=replaces,
                ctx=self.context,
            ),
            self.control,
        )
