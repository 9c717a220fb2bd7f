"""tensorflow.examples.tutorials.mnist.input_data reads local files as 1.15 did, and fetches nothing."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolkit import tensorflow as tf
from toolkit.errors import FormatError, NotFoundError

input_data: Any = tf.examples.tutorials.mnist.input_data


def write(folder: Path, train: int = 60, test: int = 10) -> None:
    """Four files in which image k is all k, and its label k modulo 10."""
    for prefix, count in (("train", train), ("t10k", test)):
        pixels = np.repeat(np.arange(count, dtype=np.uint8), 784).tobytes()
        head = np.array([2051, count, 28, 28], ">u4").tobytes()
        (folder / f"{prefix}-images-idx3-ubyte.gz").write_bytes(gzip.compress(head + pixels))
        labels = np.array([2049, count], ">u4").tobytes() + (np.arange(count) % 10).astype(np.uint8).tobytes()
        (folder / f"{prefix}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels))


def test_files_are_read(tmp_path: Path) -> None:
    write(tmp_path)
    found = input_data.read_data_sets(str(tmp_path), one_hot=True, validation_size=20, seed=3)
    assert (found.train.num_examples, found.validation.num_examples, found.test.num_examples) == (40, 20, 10)
    assert found.train.images.shape == (40, 784) and found.train.images.dtype == np.float32
    assert found.train.images[0, 0] == np.float32(20 * (1.0 / 255.0)) and found.train.labels[3].argmax() == 3
    plain = input_data.read_data_sets(tmp_path, validation_size=0, reshape=False, dtype=tf.uint8)
    assert plain.test.images.shape == (10, 28, 28, 1) and plain.test.labels.tolist() == list(range(10))


def test_batches_go_through_epochs(tmp_path: Path) -> None:
    write(tmp_path)
    train = input_data.read_data_sets(str(tmp_path), validation_size=20, dtype=tf.uint8).train
    np.random.seed(5)
    order = np.arange(40)
    np.random.shuffle(order)
    np.random.seed(5)
    images, labels = train.next_batch(25)
    assert images[:, 0].tolist() == (20 + order[:25]).tolist() and labels.tolist() == ((20 + order[:25]) % 10).tolist()
    images, _ = train.next_batch(25)
    assert images[:15, 0].tolist() == (20 + order[25:]).tolist() and train.epochs_completed == 1
    assert len(train.next_batch(30)[0]) == 30 and train.epochs_completed == 1
    assert train.next_batch(2, fake_data=True)[1] == [0, 0]


def test_fake_data_needs_no_files() -> None:
    found = input_data.read_data_sets("nowhere", fake_data=True, one_hot=True)
    images, labels = found.train.next_batch(3, True)
    assert np.shape(images) == (3, 784) and labels[0] == [1] + [0] * 9 and found.train.num_examples == 10000


def test_mistakes_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"'train-images-idx3-ubyte.gz' in .* downloads nothing") as missing:
        input_data.read_data_sets(str(tmp_path))
    assert "\n" not in str(missing.value)
    write(tmp_path)
    with pytest.raises(ValueError, match="validation_size 5000: expected 0 to 60"):
        input_data.read_data_sets(str(tmp_path))
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(b"not gzip")
    with pytest.raises(FormatError, match="not gzip-compressed"):
        input_data.read_data_sets(str(tmp_path))
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(b"\0" * 40))
    with pytest.raises(FormatError, match="holds no images"):
        input_data.read_data_sets(str(tmp_path))


def test_programs_import_it(tmp_path: Path) -> None:
    from toolkit.tensorflow import importer

    folder = "tensorflow.examples.tutorials.mnist"
    code = f"from {folder} import input_data\nimport {folder}.input_data as again"
    names: dict[str, Any] = {}
    with importer.installed():
        exec(code, names)
    assert names["input_data"] is names["again"] and callable(names["input_data"].read_data_sets)
