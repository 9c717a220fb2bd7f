"""Every network of tf.keras.applications gives TensorFlow's numbers: one of each kind, all of them with -m long."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.models import build_into
from tests.network_models import FAMILIES, application
from tests.runtime.networks.network_case import assert_varies, check_outputs, far_of_case, run_case

pytestmark = pytest.mark.tensorflow

SIZES = {name: size for size, names in FAMILIES.values() for name in names}
#: test_networks.py runs a larger image through these
ELSEWHERE = {"EfficientNetB0", "MobileNetV2", "ResNet50"}
#: the largest ones, made of what the others are made of: a quarter of a minute to more than one each
LARGE = {"InceptionResNetV2", "InceptionV3", "VGG16"}
QUICK = [names[0] for _, names in FAMILIES.values() if names[0] not in ELSEWHERE | LARGE]


@pytest.mark.parametrize("name", QUICK)
def test_one_of_each_kind(name: str) -> None:
    built = application(name, str(SIZES[name]))
    wanted = built.arrays("outputs.npz")
    assert_varies(wanted)
    check_outputs([run_case(built)], wanted, far_of_case(built))


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in SIZES if name not in QUICK])
def test_the_others(name: str, tmp_path: Path) -> None:
    # too large to keep: 6 GB together
    built = build_into(tmp_path / name, "application", name, str(SIZES[name]))
    try:
        wanted = built.arrays("outputs.npz")
        assert_varies(wanted)
        check_outputs([run_case(built)], wanted, far_of_case(built))
    finally:
        shutil.rmtree(built.folder)


def test_all_are_listed() -> None:
    import keras

    assert {name for name in dir(keras.applications) if name[0].isupper()} == SIZES.keys()
