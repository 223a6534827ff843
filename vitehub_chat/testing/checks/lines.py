"""Lines: messages that wait for each other before one lock, with short words for their steps."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

import attrs

from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.plans import TurnPlan
from vitehub_chat.model.policies import ConcurrencyPolicy
from vitehub_chat.state.contract import NO_CONTEXT, AgentState, Fence, StateContext
from vitehub_chat.state.values import (
    Admission,
    Finished,
    Grant,
    NewEntry,
    NewRow,
    Outcome,
    Recorded,
    SessionRequest,
    TurnEnd,
    WindowRequest,
)
from vitehub_chat.testing.checks.expecting import equal, present
from vitehub_chat.testing.checks.material import new_key, row, rows

LEASE: Final = timedelta(seconds=30)
DEDUPE_TTL: Final = timedelta(minutes=10)
MOMENT: Final = timedelta(microseconds=1)
OWNER: Final = "first"

_MOST_RUNS: Final = 1000


@attrs.frozen(kw_only=True)
class Line:
    """One lock and those who want it; messages are called by short names.

    Attributes:
        policy: What happens to a message that meets a running turn.
        key: The conversation of messages for which none is named.
    """

    state: AgentState
    policy: ConcurrencyPolicy
    key: ConversationKey

    @property
    def lock_key(self) -> str:
        """The lock."""
        return self.key.encode()

    def seen_by(self, state: AgentState) -> Line:
        """Return the same line as another object has it."""
        return attrs.evolve(self, state=state)

    def ticket(self, name: str) -> str:
        """Return the ticket of a message."""
        return f"{self.lock_key} {name}"

    def entry(self, name: str, **changes: Any) -> NewEntry:
        """Return the entry of a message; without `claim_id` it makes no claim."""
        fields = {
            "ticket_id": self.ticket(name),
            "lock_key": self.lock_key,
            "conversation": self.key,
            "wanted_id": None,
            "claim_id": None,
            "payload": json.dumps(name),
            "owner": OWNER,
        }
        return NewEntry(**{**fields, **changes})

    async def admit(
        self,
        name: str,
        *,
        policy: ConcurrencyPolicy | None = None,
        ctx: StateContext = NO_CONTEXT,
        **changes: Any,
    ) -> Admission:
        """Let a message ask to be run."""
        return await self.state.turns.admit(
            self.entry(name, **changes),
            policy=policy or self.policy,
            lease=LEASE,
            dedupe_ttl=DEDUPE_TTL,
            ctx=ctx,
        )

    async def admit_all(self, *names: str) -> None:
        """Let messages ask to be run, one after the other."""
        for name in names:
            equal((await self.admit(name)).verdict, "accepted", f"the verdict on {name}")

    async def start(self, name: str, **changes: Any) -> Grant:
        """Let a message ask to be run that has to be run at once."""
        admission = await self.admit(name, **changes)
        grant = present(admission.grant, f"the grant of {name}")
        equal(grant.ticket_id, self.ticket(name), "the granted ticket")
        return grant

    async def record(
        self,
        grant: Grant,
        *,
        window: WindowRequest | None = None,
        given: Sequence[NewRow] | None = None,
    ) -> Recorded:
        """Record the messages of a run as rows that have their names as ids."""
        return await self.state.turns.record(
            grant.ticket_id,
            rows=rows(*names_of(grant)) if given is None else given,
            session=SessionRequest(conversation=self.key),
            window=window,
            ctx=under(grant),
        )

    async def finish(
        self, grant: Grant, *, owner: str = OWNER, plan: TurnPlan | None = None
    ) -> Finished:
        """End a run; its answer is `re NAME`."""
        answer = answer_to(grant)
        return await self.state.turns.finish(
            grant.ticket_id,
            answer=answer,
            end=TurnEnd(status="complete", finish_reason="stop", message=answer.message),
            owner=owner,
            lease=LEASE,
            plan=plan,
            ctx=under(grant),
        )

    async def run(self, grant: Grant) -> Grant | None:
        """Record and end a run, and return the next one."""
        await self.record(grant)
        return (await self.finish(grant)).next

    async def drain(self, grant: Grant | None) -> list[list[str]]:
        """Run a run and all that follow, and return who was run together."""
        runs: list[list[str]] = []
        while grant is not None and len(runs) < _MOST_RUNS:
            runs.append(names_of(grant))
            grant = await self.run(grant)
        return runs

    async def take(self, owner: str = OWNER) -> Grant | None:
        """Take the lock for whoever waits longest."""
        return await self.state.turns.take(self.lock_key, owner=owner, lease=LEASE)

    async def withdraw(self, name: str) -> bool:
        """Take a message back."""
        found = await self.state.turns.withdraw(self.ticket(name), owner=OWNER, lease=LEASE)
        return found.withdrawn

    async def renew(self, grant: Grant) -> bool:
        """Extend the lease of a run."""
        return await self.state.turns.renew(grant.ticket_id, lease=LEASE, ctx=under(grant))

    async def outcome(self, name: str) -> Outcome:
        """Ask how far a message is."""
        return await self.state.turns.outcome(self.ticket(name))

    async def states(self, *names: str) -> list[str]:
        """Ask how far messages are, in one word each."""
        return [(await self.outcome(name)).state for name in names]


def new_line(state: AgentState, strategy: str = "serial", **policy: Any) -> Line:
    """Return a line of a conversation that no other check has."""
    return Line(state=state, policy=ConcurrencyPolicy(strategy=strategy, **policy), key=new_key())  # type: ignore[arg-type]


def names_of(grant: Grant) -> list[str]:
    """Return the names of the messages of a run, the answered one last."""
    return [str(json.loads(each.payload)) for each in grant.entries]


def answer_to(grant: Grant) -> NewRow:
    """Return the answer to a run."""
    return row(f"re {names_of(grant)[-1]}", "yes", role="assistant")


def under(grant: Grant) -> StateContext:
    """Return the context of the writes of a run."""
    return StateContext(fence=Fence(grant.lock_key, grant.token))
