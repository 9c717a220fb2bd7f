"""Fixtures of the command tests."""

from __future__ import annotations

import pytest

from tests.commands.checkpoint_cli import Cli


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs `graphmill checkpoint`."""
    return Cli(capsys)
