"""Planning: the plan of a turn, as it is kept beside its rows."""

from __future__ import annotations

from datetime import datetime

from vitehub_chat.conversation.driving import Invocation
from vitehub_chat.errors import StateError
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.model.plans import AnsweredBy, PlanSummary, TurnPlan, plan_entries
from vitehub_chat.model.results import ContextBudget, PreparedInvocation
from vitehub_chat.model.rows import RowStatus
from vitehub_chat.state.contract import AgentState


def plan_of(
    turn_id: str,
    prepared: PreparedInvocation,
    invocation: Invocation | None,
    status: RowStatus,
    created_at: datetime,
) -> TurnPlan:
    """Return what the model was given in a turn; without an invocation nobody was asked."""
    entries, left_out = plan_entries(prepared.selection)
    return TurnPlan(
        turn_id=turn_id,
        session_id=prepared.session_id,
        run_id=None if prepared.run is None else prepared.run.run_id,
        status=status,
        answered_by=AnsweredBy() if invocation is None else invocation.answered_by,
        created_at=created_at,
        summary=summary_of(prepared),
        entries=entries,
        left_out=left_out,
        trimmed=sum(entry.reason == "trimmed" for entry in entries),
        context_budget=prepared.context_budget,
    )


def summary_of(prepared: PreparedInvocation) -> PlanSummary | None:
    """Return which rolling summary a call has, or None."""
    budget, version = prepared.context_budget, prepared.summary_version
    if budget is None or version is None or budget.summary_through_seq is None:
        return None
    return PlanSummary(version, budget.summary_through_seq)


async def newest_budget(
    state: AgentState, key: ConversationKey, session_id: str | None
) -> ContextBudget | None:
    """Return what the turn that ended last used; None also if its plan cannot be read.

    Raises:
        StateError: The state failed.
    """
    try:
        plan = await state.plans.get(key, session_id=session_id)
    except StateError as error:
        if error.code != "corrupt":
            raise
        return None
    return None if plan is None else plan.context_budget
