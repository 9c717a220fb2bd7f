"""Fixtures of the runtime's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.runtime.devices.serialising_worker import SerialisingWorker


@pytest.fixture(scope="module", params=["local", "serialising"])
def each_worker(request: pytest.FixtureRequest) -> Iterator[None]:
    """The tests of a module run twice: with workers in this process, and with workers behind a wire."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "serialising":
            patch.setattr("toolkit.runtime.session.LocalWorker", SerialisingWorker)
        yield
