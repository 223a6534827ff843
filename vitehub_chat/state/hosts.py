"""Hosts: where a local file or the memory of a process does not last."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import Final

import attrs

from vitehub_chat.errors import ConfigError

STATE_URL_VARIABLE: Final = "VITEHUB_AGENT_STATE_URL"


@attrs.frozen(kw_only=True)
class _Host:
    """A platform and the environment variables that it sets.

    Attributes:
        signs: Any of these says that this is the platform.
        stage: Says `production` there, or something else; not set counts as production.
        emulators: Any of these says that a developer's machine plays the platform.
    """

    name: str
    signs: tuple[str, ...]
    stage: str | None = None
    emulators: tuple[str, ...] = ()


# Vercel and Netlify run their functions on AWS Lambda and show its variables too, so it is last.
_HOSTS: Final = (
    _Host(name="Vercel", signs=("VERCEL",), stage="VERCEL_ENV"),
    _Host(name="Netlify", signs=("NETLIFY",), stage="CONTEXT", emulators=("NETLIFY_DEV",)),
    _Host(
        name="Cloudflare",
        signs=("CF_PAGES", "WORKERS_CI", "CLOUDFLARE_APPLICATION_ID"),
    ),
    _Host(name="AWS Lambda", signs=("AWS_LAMBDA_FUNCTION_NAME",), emulators=("AWS_SAM_LOCAL",)),
)


def production_host(environ: Mapping[str, str] | None = None) -> str | None:
    """Return the name of the serverless platform whose production this is, or None.

    Args:
        environ: The environment variables, None takes those of the process.
    """
    variables = os.environ if environ is None else environ
    for host in _HOSTS:
        if any(_is_set(variables, sign) for sign in host.signs):
            return host.name if _is_production(host, variables) else None
    return None


def check_host(*, is_file: bool, environ: Mapping[str, str] | None = None) -> None:
    """Refuse a local file, and warn about a store in memory, where neither of them lasts.

    Providers call it when they open, so that defining and importing works everywhere.

    Raises:
        ConfigError: It is a file, and this is the production of a serverless platform.
    """
    host = production_host(environ)
    if host is None:
        return
    if is_file:
        raise ConfigError(
            f"a local file does not last on {host}",
            path="state.url",
            hint=f"set {STATE_URL_VARIABLE} to the URL of a database server",
        )
    warnings.warn(
        f"a state in memory is lost with every process on {host}; "
        f"set {STATE_URL_VARIABLE} to the URL of a database server",
        RuntimeWarning,
        stacklevel=2,
    )


def _is_production(host: _Host, variables: Mapping[str, str]) -> bool:
    if any(_is_set(variables, name) for name in host.emulators):
        return False
    stage = "" if host.stage is None else variables.get(host.stage, "")
    return stage.strip().lower() in {"", "production"}


def _is_set(variables: Mapping[str, str], name: str) -> bool:
    return variables.get(name, "").strip().lower() not in {"", "0", "false"}
