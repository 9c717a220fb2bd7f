"""The samples' networks on a GPU, on the fake driver: whatever has a kernel goes there, and training is the CPU's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands.main import run
from tests import perturbation, tolerance
from toolkit.formats.models.model import read_model
from toolkit.kernels.cuda import settings
from toolkit.kernels.cuda.driver import choose
from toolkit.kernels.cuda.driver.fake import FakeDriver
from toolkit.runtime.session import Session

SAMPLES = Path(__file__).parents[3] / "samples"
IMAGES = np.random.default_rng(0).random((4, 8, 8, 1), np.float32)
WORDS = np.array([[1, 2, 3], [4, 5, 6]], np.int32)
FEEDS: dict[str, dict[str, Any]] = {
    "digits_cnn": {"x": IMAGES, "y": np.array([1, 2, 3, 4])},
    "lstm_classifier": {"text": WORDS, "length": np.array([3, 2], np.int32), "label": np.array([0, 1])},
}


@pytest.fixture(autouse=True)
def _gpus() -> Iterator[None]:
    with choose.using(FakeDriver(2)):
        yield
    settings.forget()


@pytest.mark.parametrize("name", FEEDS)
def test_training(name: str, tmp_path: Path) -> None:
    path = str(tmp_path / "model.meta")
    assert run(["build", str(SAMPLES / f"{name}.yaml"), "-o", path, "-q"]) == 0
    model = read_model(path)
    feeds = {f"{key}:0": value for key, value in FEEDS[name].items()}

    def work(session: Session) -> list[Any]:
        session.run("init")
        return [session.run(["loss:0", "train:0"], feeds)[0] for _ in range(2)]

    with Session(model, precision="exact") as session:
        wanted = work(session)
    far = perturbation.of_network(model, work)
    with Session(model, devices={"GPU": 1}) as session:
        got = work(session)
        placed = session.compiled(["loss:0", "train:0"], list(feeds)).stages.placed
        assert sum(node.device.endswith("GPU:0") for node in placed) > len(placed) // 4
        for mine, other, allowed in zip(got, wanted, far, strict=True):
            tolerance.assert_within(mine, other, allowed)
    assert got[1] < got[0]
