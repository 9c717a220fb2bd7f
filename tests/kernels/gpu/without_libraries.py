"""GPUs without cuBLASLt and cuDNN: what our own kernels give where a library is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from toolkit.kernels.cuda.driver import choose
from toolkit.kernels.cuda.driver.fake import FakeDriver


@contextmanager
def without_libraries() -> Iterator[FakeDriver]:
    """Within this, the driver is a fake one whose context has no libraries."""
    driver = FakeDriver(1)
    context = driver.open(0)
    context.__dict__.update(blas=None, dnn=None)  # what would be found when they are asked for
    with choose.using(driver):
        yield driver
