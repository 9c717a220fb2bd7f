# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.contrib.learn.datasets: data by name, read or made."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from toolkit.errors import NotFoundError
from toolkit.tensorflow.families.data import mnist
from toolkit.tensorflow.learn import datasets
from toolkit.tensorflow.learn.datasets import LabelledExamples

_SEED = 42


def load_mnist(train_dir: Any = "MNIST-data") -> Any:
    """Handwritten digits, out of the files in a folder."""
    return mnist.read_data_sets(train_dir)


def _load_dbpedia(size: Any = "small", test_with_fake_data: Any = False) -> Any:
    """Titles and abstracts of articles by their subject, out of the files in $TF_EXP_BASE_DIR/dbpedia_data.

    Raises:
        NotFoundError: they are not there.
    """
    if test_with_fake_data:
        raise NotFoundError(
            "the invented articles of TensorFlow's own tests are not here; give test_with_fake_data=False"
        )
    folder = os.path.join(os.environ.get("TF_EXP_BASE_DIR", ""), "dbpedia_data", "dbpedia_csv")
    found: list[Any] = []
    for name in ("train", "test"):
        path = os.path.join(folder, f"{name}.csv")
        if not os.path.exists(path):
            raise NotFoundError(
                f"there is no file '{path}'; unpack dbpedia_csv.tar.gz of the DBpedia ontology classification set in "
                f"'{os.path.dirname(folder)}' (graphmill downloads nothing)"
            )
        if size == "small":
            datasets.shrink_csv(path, 1000)
            path = os.path.join(folder, f"{name}_small.csv")
        found.append(datasets.load_csv_without_header(path, np.int32, np.str_, target_column=0))
    return mnist.Datasets(train=found[0], validation=None, test=found[1])


def circles(
    n_samples: Any = 100, noise: Any = None, seed: Any = None, factor: Any = 0.8, n_classes: Any = 2, *args: Any,
    **kwargs: Any,
) -> LabelledExamples:  # fmt: skip
    """Points on circles, each `factor` of the one before, whose number is their class."""
    del args, kwargs
    _start(seed)
    angles = np.linspace(0, 2 * np.pi, n_samples // n_classes)
    radii = [factor**number for number in range(n_classes)]
    rest = n_samples % n_classes
    x = [*(np.cos(angles) * radius for radius in radii), np.cos(np.random.rand(rest) * 2 * np.pi)]
    y = [*(np.sin(angles) * radius for radius in radii), np.sin(np.random.rand(rest) * 2 * np.pi)]
    return _shuffled(x, y, [*range(n_classes)], len(angles), noise)


def spirals(
    n_samples: Any = 100, noise: Any = None, seed: Any = None, mode: Any = "archimedes", n_loops: Any = 2, *args: Any,
    **kwargs: Any,
) -> LabelledExamples:  # fmt: skip
    """Points on two spirals, whose number is their class.

    Raises:
        ValueError: there is no such spiral.
    """
    if mode not in _RADII:
        raise ValueError(f"there is no spiral '{mode}'; there are: {', '.join(_RADII)}")
    del args
    _start(seed)
    angles = np.linspace(0, 2 * n_loops * np.pi, n_samples // 2)
    radius, rest = _RADII[mode], n_samples % 2
    x: list[Any] = []
    y: list[Any] = []
    for number in range(2):
        x.append(_scaled(radius(angles, **kwargs) * np.cos(angles + number * np.pi)))
        y.append(_scaled(radius(angles, **kwargs) * np.sin(angles + number * np.pi)))
    if rest:
        one = np.random.rand(rest) * 2 * np.pi
        x.append(_scaled(radius(one, **kwargs) * np.cos(one)))
        y.append(_scaled(radius(one, **kwargs) * np.sin(one)))
    return _shuffled(x, y, [0, 1], len(angles), noise)


def _start(seed: Any) -> None:
    if seed is not None:
        np.random.seed(seed)


def _scaled(values: Any) -> Any:
    return values / np.max(np.abs(values))


def _bernoulli(angles: Any, exp_scale: float = 0.1, **_: Any) -> Any:
    return np.exp(exp_scale * angles)


_RADII: dict[str, Callable[..., Any]] = {
    "archimedes": lambda angles, **_: angles, "bernoulli": _bernoulli, "fermat": lambda angles, **_: np.sqrt(angles)
}  # fmt: skip


def _shuffled(x: list[Any], y: list[Any], classes: list[int], each: int, noise: Any) -> LabelledExamples:
    """Points in another order; what is over belongs to the first class."""
    data = np.stack([np.concatenate(x), np.concatenate(y)], axis=1)
    target = np.zeros(len(data), np.int32)
    target[: each * len(classes)] = np.repeat(classes, each)
    order = np.random.permutation(range(len(data)))
    if noise is not None:
        data += np.random.normal(scale=noise, size=data.shape)
    return LabelledExamples(data[order], target[order])


DATASETS: dict[str, Callable[..., Any]] = {
    "iris": datasets.load_iris, "boston": datasets.load_boston, "mnist": load_mnist, "dbpedia": _load_dbpedia
}  # fmt: skip
SYNTHETIC: dict[str, Callable[..., Any]] = {"circles": circles, "spirals": spirals}


def load_dataset(name: Any, size: Any = "small", test_with_fake_data: Any = False) -> Any:
    """Data by name: iris, boston, mnist, dbpedia.

    Args:
        size: "small": every thousandth article of dbpedia.

    Raises:
        ValueError: there are no such data.
        NotFoundError: their files are not there.
    """
    if name not in DATASETS:
        raise ValueError(f"there are no data '{name}'; there are: {', '.join(DATASETS)}")
    return DATASETS[name](size, test_with_fake_data) if name == "dbpedia" else DATASETS[name]()


def make_dataset(
    name: Any, n_samples: Any = 100, noise: Any = None, seed: Any = _SEED, *args: Any, **kwargs: Any
) -> LabelledExamples:
    """Made data by name: circles, spirals.

    Raises:
        ValueError: there are no such data.
    """
    if name not in SYNTHETIC:
        raise ValueError(f"there are no made data '{name}'; there are: {', '.join(SYNTHETIC)}")
    return SYNTHETIC[name](*args, n_samples=n_samples, noise=noise, seed=seed, **kwargs)
