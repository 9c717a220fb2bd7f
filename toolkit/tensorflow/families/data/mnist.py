# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tensorflow.examples.tutorials.mnist.input_data: handwritten digits out of local files, as courses read them.

The files are those of the MNIST database, gzip-compressed idx files. Nothing is fetched: what is missing is one line
that says which file and where.
"""

from __future__ import annotations

import collections
import gzip
import os
from typing import Any

import numpy as np

from toolkit.errors import FormatError, NotFoundError
from toolkit.graph import dtypes

#: train images, train labels, test images, test labels
FILES = (
    "train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz",
)  # fmt: skip
Datasets = collections.namedtuple("Datasets", ["train", "validation", "test"])
#: where TensorFlow fetched them from; nothing is fetched here
SOURCE_URL = "https://storage.googleapis.com/cvdf-datasets/mnist/"
_IMAGES, _LABELS = 2051, 2049


class DataSet:
    """Images and labels, given out in batches, each epoch in another order."""

    def __init__(
        self, images: Any, labels: Any, fake_data: bool = False, one_hot: bool = False, dtype: Any = dtypes.float32,
        reshape: bool = True, seed: Any = None,
    ):  # fmt: skip
        from toolkit.client.construction.convert import as_dtype
        from toolkit.client.random import seeds

        first, second = seeds.get_seed(seed)
        np.random.seed(first if seed is None else second)
        kind = as_dtype(dtype).base
        if kind not in (dtypes.uint8, dtypes.float32):
            raise TypeError(f"dtype {kind}: images are uint8 (0 to 255) or float32 (0 to 1)")
        self._fake, self._one_hot = fake_data, one_hot
        if fake_data:
            self._count = 10000
        else:
            if len(images) != len(labels):
                raise FormatError(f"there are {len(images)} images and {len(labels)} labels")
            self._count = len(images)
            if reshape:
                images = images.reshape(len(images), images.shape[1] * images.shape[2])
            if kind is dtypes.float32:
                images = np.multiply(images.astype(np.float32), 1.0 / 255.0)
        self._images, self._labels = images, labels
        self._epochs, self._place = 0, 0

    @property
    def images(self) -> Any:
        return self._images

    @property
    def labels(self) -> Any:
        return self._labels

    @property
    def num_examples(self) -> int:
        return self._count

    @property
    def epochs_completed(self) -> int:
        return self._epochs

    def next_batch(self, batch_size: int, fake_data: bool = False, shuffle: bool = True) -> Any:
        """The next images and labels; an epoch that ends inside of a batch is followed by the next one."""
        if fake_data:
            label: Any = [1] + [0] * 9 if self._one_hot else 0
            return [[1] * 784 for _ in range(batch_size)], [label for _ in range(batch_size)]
        start = self._place
        if self._epochs == 0 and start == 0 and shuffle:
            self._shuffle()
        if start + batch_size <= self._count:
            self._place = start + batch_size
            return self._images[start : self._place], self._labels[start : self._place]
        self._epochs += 1
        images, labels = self._images[start:], self._labels[start:]
        if shuffle:
            self._shuffle()
        self._place = batch_size - (self._count - start)
        rest = self._images[: self._place], self._labels[: self._place]
        return np.concatenate((images, rest[0])), np.concatenate((labels, rest[1]))

    def _shuffle(self) -> None:
        order = np.arange(self._count)
        np.random.shuffle(order)
        self._images, self._labels = self._images[order], self._labels[order]


def _read(folder: str, name: str) -> bytes:
    path = next((p for p in (os.path.join(folder, name), os.path.join(folder, name[:-3])) if os.path.exists(p)), None)
    if path is None:
        raise NotFoundError(
            f"there is no file '{name}' in '{folder}'; put the four files of the MNIST database there "
            f"({', '.join(FILES)}); graphmill downloads nothing"
        )
    try:
        with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as file:
            return file.read()
    except (OSError, EOFError) as error:
        raise FormatError(f"it is not gzip-compressed: {error}", file=path) from None


def _array(data: bytes, magic: int, what: str, file: Any = None) -> Any:
    """The bytes of an idx file as an array."""
    rank = magic & 0xFF
    sizes = np.frombuffer(data[: 4 * (rank + 1)], ">u4")
    if len(sizes) != rank + 1 or sizes[0] != magic:
        raise FormatError(f"it holds no {what}: an idx file of them begins with {magic}", file=file)
    shape = [int(size) for size in sizes[1:]]
    body = np.frombuffer(data, np.uint8, offset=4 * (rank + 1))
    if body.size != int(np.prod(shape)):
        raise FormatError(f"it says that it has {what} {shape}, but has {body.size} bytes", file=file)
    return body.reshape(shape)


def extract_images(f: Any) -> Any:
    """Images [count, rows, columns, 1] out of an open file."""
    return _array(gzip.decompress(f.read()), _IMAGES, "images")[..., None]


def extract_labels(f: Any, one_hot: bool = False, num_classes: int = 10) -> Any:
    """Labels [count], or [count, num_classes], out of an open file."""
    labels = _array(gzip.decompress(f.read()), _LABELS, "labels")
    return dense_to_one_hot(labels, num_classes) if one_hot else labels


def dense_to_one_hot(labels_dense: Any, num_classes: int) -> Any:
    return np.eye(num_classes)[np.asarray(labels_dense).ravel()]


def read_data_sets(
    train_dir: Any, fake_data: bool = False, one_hot: bool = False, dtype: Any = dtypes.float32, reshape: bool = True,
    validation_size: int = 5000, seed: Any = None, source_url: Any = SOURCE_URL,
) -> Any:  # fmt: skip
    """Digits to train, to validate and to test, out of four files in `train_dir`.

    Raises:
        NotFoundError: a file is not there.
        FormatError: a file is something else.
        ValueError: more are to validate than there are.
    """
    rest = {"dtype": dtype, "reshape": reshape, "seed": seed}
    if fake_data:
        return Datasets(*(DataSet([], [], True, one_hot, dtype, seed=seed) for _ in range(3)))
    folder = os.fspath(train_dir)
    found = []
    for name, magic in zip(FILES, (_IMAGES, _LABELS) * 2, strict=True):
        what = "images" if magic == _IMAGES else "labels"
        array = _array(_read(folder, name), magic, what, os.path.join(folder, name))
        if magic == _IMAGES:
            found.append(array[..., None])
        else:
            found.append(dense_to_one_hot(array, 10) if one_hot else array)
    images, labels, test_images, test_labels = found
    if not 0 <= validation_size <= len(images):
        raise ValueError(f"validation_size {validation_size}: expected 0 to {len(images)}, the number of images")
    return Datasets(
        train=DataSet(images[validation_size:], labels[validation_size:], **rest),
        validation=DataSet(images[:validation_size], labels[:validation_size], **rest),
        test=DataSet(test_images, test_labels, **rest),
    )
