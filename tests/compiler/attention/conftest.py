"""Where the tests of this folder run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from toolkit.kernels.cuda.driver import choose
from toolkit.kernels.cuda.driver.fake import FakeDriver


@pytest.fixture(autouse=True)
def _fake() -> Iterator[None]:
    """On a simulated GPU."""
    with choose.using(FakeDriver()):
        yield
