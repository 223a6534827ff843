"""Exit codes, and what is said with them."""

from __future__ import annotations

import json

import pytest

from vitehub_chat import errors
from vitehub_chat.cli.failures import exit_code_of, failure_of, report


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ChatError(), 1),
        (errors.ContextOverflowError(), 1),
        (errors.StateError(code="corrupt"), 1),
        (errors.SchemaVersionError(), 1),
        (errors.InputError(), 2),
        (errors.CursorError(), 2),
        (errors.ConfigError(), 3),
        (errors.NotFoundError(), 4),
        (errors.ChatBusyError(), 5),
        (errors.StateConflictError(), 5),
        (errors.StateUnavailableError(), 6),
        (errors.StateClosedError(), 6),
        (errors.MissingDependencyError("YAML", extra="yaml"), 7),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_error_has_its_exit_code(error: errors.ChatError, code: int) -> None:
    assert exit_code_of(error) == code


def test_an_error_is_told_with_path_and_hint(capsys: pytest.CaptureFixture[str]) -> None:
    error = errors.ConfigError("must be text", path="name", hint="write it in quotes")
    report(failure_of(error), as_json=False)
    assert capsys.readouterr().err == "error: name: must be text\nhint: write it in quotes\n"


def test_an_error_as_json_leaves_out_what_is_absent(capsys: pytest.CaptureFixture[str]) -> None:
    report(failure_of(errors.NotFoundError("no such session")), as_json=True)
    captured = capsys.readouterr()
    error = {"code": "not_found", "message": "no such session"}
    assert (captured.out, json.loads(captured.err)) == ("", {"error": error})


def test_of_an_error_of_others_only_class_and_place_are_told() -> None:
    with pytest.raises(ValueError, match="s3cret") as caught:
        int("s3cret")
    found = failure_of(caught.value)
    assert (found.code, found.exit_code) == ("internal", 1)
    assert found.message.startswith("ValueError at test_failures.py:")
