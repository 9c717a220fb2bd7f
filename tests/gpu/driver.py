"""Which driver tests of GPUs run on: the fake one, but for those that `-m gpu` asks for, which need hardware."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

#: two devices, so that copies between them are run too
FAKE = "fake:2"
VARIABLE = "GRAPHMILL_CUDA"


def wants_hardware(config: pytest.Config) -> bool:
    """Whether this run is for the tests that need a GPU."""
    return config.option.markexpr == "gpu"


@pytest.fixture(autouse=True)
def driver(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The fake driver, or the real one for `-m gpu`; what the environment says goes first."""
    if not wants_hardware(request.config):
        monkeypatch.setenv(VARIABLE, os.environ.get(VARIABLE) or FAKE)
    yield


def require_hardware() -> None:
    """Fail unless there is a GPU: who runs `-m gpu` wants to know what it does there."""
    if os.environ.get(VARIABLE, "").startswith("fake"):
        pytest.fail(f"{VARIABLE}={os.environ[VARIABLE]}: this test is for a real GPU")
    if os.environ.get("CUDA_VISIBLE_DEVICES") == "":
        pytest.fail("CUDA_VISIBLE_DEVICES is empty, which hides all GPUs: set it to 0 for `-m gpu`")


#: for `pytest.mark.parametrize("where", WHERE)`: in every run on the fake driver, with `-m gpu` on hardware
WHERE = ("fake", pytest.param("hardware", marks=pytest.mark.gpu))


def on(where: str) -> None:
    """What a test with `WHERE` calls first."""
    if where == "hardware":
        require_hardware()
