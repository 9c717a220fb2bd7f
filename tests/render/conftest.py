"""Tests in a browser run where there is one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.render.browser import CHROMIUM, Browser


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave tests marked `browser` out, visibly, on a machine without a Chromium."""
    if CHROMIUM is not None:
        return
    left_out = [item for item in items if item.get_closest_marker("browser") is not None]
    if left_out:
        items[:] = [item for item in items if item.get_closest_marker("browser") is None]
        config.hook.pytest_deselected(items=left_out)
        print(f"\nno Chromium on the PATH: {len(left_out)} browser tests are left out")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.fail("these tests need a Chromium on the PATH; leave them out with -m 'not browser'")
    with Browser() as found:
        yield found


@pytest.fixture(autouse=True)
def quiet(request: pytest.FixtureRequest) -> Iterator[None]:
    """No test leaves a console error or a request to anywhere behind."""
    yield
    if "browser" in request.fixturenames:
        used: Browser = request.getfixturevalue("browser")
        assert used.errors == []
        assert all(url.startswith("file://") and url.endswith(".html") for url in used.requests)
