"""Extras that a test of the examples needs."""

from __future__ import annotations

import importlib
import os
from typing import Any

import pytest


def need(module: str) -> Any:
    """Import a module of an extra; where it is missing, skip at a desk and fail in CI."""
    if os.environ.get("CI"):
        return importlib.import_module(module)
    return pytest.importorskip(module)
