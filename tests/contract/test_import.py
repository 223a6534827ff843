"""What a program gets by importing the package: the standard library, and silence."""

from __future__ import annotations

import json
import subprocess
import sys

FRESH_IMPORT = """
import json, sys
before = set(sys.modules)
import vitehub_chat
loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
print(json.dumps(sorted(loaded - sys.stdlib_module_names)))
"""

EVERY_PUBLIC_NAME = """
import vitehub_chat
for name in vitehub_chat.__all__:
    getattr(vitehub_chat, name)
"""

LOGGING_AFTERWARDS = """
import json, logging, structlog
loggers = [logging.getLogger(), *(
    logger for name, logger in logging.root.manager.loggerDict.items()
    if name.partition(".")[0] == "vitehub_chat" and isinstance(logger, logging.Logger)
)]
print(json.dumps({
    "structlog configured": structlog.is_configured(),
    "handlers": sorted({type(h).__name__ for logger in loggers for h in logger.handlers}),
    "levels": sorted({logger.level for logger in loggers[1:]} | {logging.NOTSET}),
    "root level": logging.getLogger().level,
}))
"""


def run(script: str) -> str:
    """Run a script in a fresh interpreter that does not see the working directory."""
    done = subprocess.run(
        [sys.executable, "-P", "-W", "error", "-c", script],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_a_fresh_import_loads_no_third_party_module() -> None:
    assert json.loads(run(FRESH_IMPORT)) == ["vitehub_chat"]


def test_every_public_name_can_be_had_in_silence() -> None:
    assert run(EVERY_PUBLIC_NAME) == ""


def test_logging_and_structlog_stay_as_the_application_left_them() -> None:
    state = json.loads(run(EVERY_PUBLIC_NAME + LOGGING_AFTERWARDS))
    assert state.pop("handlers") in ([], ["NullHandler"])
    assert state == {"structlog configured": False, "levels": [0], "root level": 30}
