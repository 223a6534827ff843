"""Hosts: where a local file does not last, and where that is not said."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import pytest

from vitehub_chat.errors import ConfigError
from vitehub_chat.state.hosts import check_host, production_host

if TYPE_CHECKING:
    from collections.abc import Mapping


@pytest.mark.parametrize(
    ("environ", "host"),
    [
        ({}, None),
        ({"PATH": "/bin", "HOME": "/root"}, None),
        ({"VERCEL": "1"}, "Vercel"),
        ({"VERCEL": "1", "VERCEL_ENV": "production"}, "Vercel"),
        ({"VERCEL": "1", "VERCEL_ENV": "preview"}, None),
        ({"VERCEL": "1", "VERCEL_ENV": "development"}, None),
        ({"VERCEL": "1", "AWS_LAMBDA_FUNCTION_NAME": "f"}, "Vercel"),
        ({"VERCEL": "1", "VERCEL_ENV": "preview", "AWS_LAMBDA_FUNCTION_NAME": "f"}, None),
        ({"VERCEL": ""}, None),
        ({"VERCEL": "0"}, None),
        ({"NETLIFY": "true"}, "Netlify"),
        ({"NETLIFY": "true", "CONTEXT": "production"}, "Netlify"),
        ({"NETLIFY": "true", "CONTEXT": "deploy-preview"}, None),
        ({"NETLIFY": "true", "NETLIFY_DEV": "true"}, None),
        ({"CONTEXT": "production"}, None),
        ({"CF_PAGES": "1"}, "Cloudflare"),
        ({"WORKERS_CI": "1"}, "Cloudflare"),
        ({"AWS_LAMBDA_FUNCTION_NAME": "f"}, "AWS Lambda"),
        ({"AWS_LAMBDA_FUNCTION_NAME": "f", "AWS_SAM_LOCAL": "true"}, None),
    ],
)
def test_a_platform_is_known_by_its_variables(environ: Mapping[str, str], host: str | None) -> None:
    assert production_host(environ) == host


def test_a_file_is_refused_naming_the_host_and_the_variable() -> None:
    with pytest.raises(ConfigError) as caught:
        check_host(is_file=True, environ={"VERCEL": "1"})
    assert "Vercel" in str(caught.value)
    assert "VITEHUB_AGENT_STATE_URL" in str(caught.value)


def test_a_store_in_memory_is_warned_about() -> None:
    with pytest.warns(RuntimeWarning, match="Netlify.*VITEHUB_AGENT_STATE_URL"):
        check_host(is_file=False, environ={"NETLIFY": "true"})


@pytest.mark.parametrize("is_file", [True, False])
def test_elsewhere_nothing_is_said(is_file: bool) -> None:  # noqa: FBT001 - a parameter
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_host(is_file=is_file, environ={})


def test_the_environment_of_the_process_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "f")
    assert production_host() == "AWS Lambda"
