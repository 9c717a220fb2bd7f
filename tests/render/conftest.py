"""Tests in a browser run where there is one."""

from __future__ import annotations

import pytest

from tests.render.browser import CHROMIUM


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave tests marked `browser` out, visibly, on a machine without a Chromium."""
    if CHROMIUM is not None:
        return
    left_out = [item for item in items if item.get_closest_marker("browser") is not None]
    if left_out:
        items[:] = [item for item in items if item.get_closest_marker("browser") is None]
        config.hook.pytest_deselected(items=left_out)
        print(f"\nno Chromium on the PATH: {len(left_out)} browser tests are left out")
