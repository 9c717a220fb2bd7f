"""Training from the graph's own queues and readers, with TensorFlow's graph."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from commands.main import run as graphmill
from toolkit.formats import bundle

pytestmark = pytest.mark.tensorflow


@pytest.fixture
def queue_model(tf: ModuleType, tmp_path: Path) -> str:
    """A MetaGraph made by TensorFlow: a file of numbers read twice through queues, summed into a variable."""
    numbers = tmp_path / "numbers.txt"
    numbers.write_text("\n".join(map(str, range(1, 11))) + "\n")
    v1 = tf.compat.v1
    path = str(tmp_path / "model.meta")
    with tf.Graph().as_default():
        files = v1.train.string_input_producer([str(numbers)], num_epochs=2, shuffle=False)
        _, line = v1.TextLineReader().read(files)
        batch = v1.train.batch([v1.string_to_number(line)], 4, allow_smaller_final_batch=True)
        total = v1.get_variable("total", initializer=0.0, use_resource=False)
        step = v1.train.get_or_create_global_step()
        with v1.control_dependencies([v1.assign_add(total, v1.reduce_sum(batch))]):
            v1.group(v1.assign_add(step, 1), name="train")
        saver = v1.train.Saver([total, step])
        v1.train.export_meta_graph(path, saver_def=saver.saver_def)
    return path


def test_until_the_input_ends(queue_model: str, tmp_path: Path) -> None:
    """OutOfRange is the normal end; nothing of the input is lost."""
    folder = tmp_path / "ckpt"
    assert graphmill(["run", queue_model, "--target", "train", "--checkpoint-dir", str(folder)]) == 0
    latest = bundle.latest_checkpoint(folder)
    assert latest is not None and latest.endswith("-5")
    assert bundle.BundleReader(latest).read("total") == 110


def test_stopped_before_the_end(queue_model: str, tmp_path: Path) -> None:
    folder = tmp_path / "ckpt"
    assert graphmill(["run", queue_model, "--target", "train", "--steps", "2", "--checkpoint-dir", str(folder)]) == 0
    latest = bundle.latest_checkpoint(folder)
    assert latest is not None and latest.endswith("-2")


def test_a_missing_input_file_is_told(queue_model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "numbers.txt").unlink()
    code = graphmill(["run", queue_model, "--target", "train", "--checkpoint-dir", str(tmp_path / "ckpt")])
    message = capsys.readouterr().err.strip().splitlines()[-1]
    assert code == 3 and "numbers.txt" in message
