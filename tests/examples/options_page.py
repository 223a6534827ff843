"""The reference of options: built from the option models, so that it cannot be wrong.

    python tests/examples/options_page.py

writes `docs/reference/options.md` anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic.alias_generators import to_camel

from vitehub_chat.config.chat_model import ChatModel
from vitehub_chat.config.definition_model import DefinitionModel, StateModel
from vitehub_chat.config.lowering import describe, inner_models
from vitehub_chat.config.option_model import OptionModel
from vitehub_chat.config.trigger_model import TriggerModel

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "options.md"

FOR_CHANNELS = frozenset(
    {
        "delivery",
        "fallback_streaming_placeholder_text",
        "loading",
        "loading.text",
        "stream",
        "streaming_update_interval_ms",
        "thread_history",
        "thread_history.max_messages",
        "thread_history.ttl_ms",
    }
)
"""What is accepted, but only matters to channels."""

FOR_OTHER_STATES = frozenset({"auth_token", "auth_token_env"})
"""What is accepted, but means nothing to the embedded providers."""

HEAD = """# Options

Written by `tests/examples/options_page.py` from the models that check them.

Every option has two spellings, snake_case and camelCase; both at once is an error, and so is an
unknown name. Nothing is converted: `"20"`, `2.0` and `true` are no numbers of messages. `null` (in
Python `None`) means that an option is not given. Times end in `_ms` and are in milliseconds. An
error names the path of the option, such as `trigger_history.max_messages`.

Options marked *channels* only matter to messages of
[channels](../how-to/write-a-channel.md). Those marked *servers* only matter to states on a server:
a [libSQL server](../how-to/libsql.md) is shown the token, and in PostgreSQL it is the password.

What a callable gets and gives, and the options of each driver: [drivers and functions](code.md).
How sessions are called and continued, and what messages without a time do:
[the turn](../explanation/turn.md#which-session-and-how-it-is-called).
"""

SECTIONS: tuple[tuple[str, str, type[OptionModel]], ...] = (
    ("Agent definition", "What `define_agent()` and a definition file take.", DefinitionModel),
    ("State", "What `state` takes as a mapping; a text is its `url`.", StateModel),
    ("chat()", 'What `chat()` and `use = "chat"` take.', ChatModel),
    ("Input of chat.message", "What `run_agent_trigger()` takes for this trigger.", TriggerModel),
)

_TITLES = {model: title for title, _, model in SECTIONS}


def build_page() -> str:
    """Return the page."""
    parts = [HEAD]
    for title, about, model in SECTIONS:
        parts.append(f"## {title}\n\n{about}\n")
        parts += _tables(model, model, "")
    return "\n".join(parts)


def _tables(root: type[OptionModel], model: type[OptionModel], path: str) -> Iterator[str]:
    inner = inner_models(model)
    if path:
        about = (model.__doc__ or "").strip()
        yield f"### {_TITLES[root]}: `{path}`\n\n{about}\n"
    yield "| option | camelCase | value | meaning |\n| --- | --- | --- | --- |"
    yield "\n".join(_row(root, model, field, path) for field in model.model_fields) + "\n"
    for field, each in inner.items():
        where = f"{path}.{field}" if path else field
        yield from _tables(root, each, where)


def _row(root: type[OptionModel], model: type[OptionModel], field: str, path: str) -> str:
    info, where = model.model_fields[field], f"{path}.{field}" if path else field
    meaning = " ".join((info.description or "").split())
    if info.is_required():
        meaning = f"**required** {meaning}"
    if root is ChatModel and where in FOR_CHANNELS:
        meaning = f"*channels* {meaning}"
    if root is StateModel and where in FOR_OTHER_STATES:
        meaning = f"*servers* {meaning}"
    allowed = describe(model, field).replace("|", "\\|")
    return f"| `{field}` | `{to_camel(field)}` | {allowed} | {meaning} |"


if __name__ == "__main__":
    PAGE.write_text(build_page(), encoding="utf-8")
