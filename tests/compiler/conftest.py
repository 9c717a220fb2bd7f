"""What tests of the compiler may ask for."""

from __future__ import annotations

from collections.abc import Generator

import pytest


@pytest.fixture(scope="package", autouse=True)
def round_trip() -> Generator[None]:
    """The text form of every program that is compiled here is read as the same program."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRAPHMILL_ROUND_TRIP", "on")
        yield
