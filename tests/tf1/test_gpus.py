"""tf.Session, tf.config and tf.test with GPUs, on the fake driver."""

# TensorFlow's names have no types
# pyright: basic

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from toolkit import tensorflow as tf
from toolkit.kernels.cuda import device, settings
from toolkit.kernels.cuda.driver import choose
from toolkit.kernels.cuda.driver.fake import FakeDriver
from toolkit.tensorflow.families.platform import config as family

MEMORY = 1 << 22


@pytest.fixture
def _gpus(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two GPUs, of which nothing was said, and nothing said behind the test."""
    monkeypatch.setattr(family, "settings", type(family.settings)())
    monkeypatch.setattr(family, "_known_gpus", [None])
    with choose.using(FakeDriver(2, memory=MEMORY)):
        yield
    settings.forget()


pytestmark = pytest.mark.usefixtures("_gpus")


def devices(config: tf.ConfigProto | None = None) -> list[str]:
    """The devices of a session."""
    with tf.Graph().as_default(), tf.Session(config=config) as session:
        return [each.name.rpartition("/device:")[2] for each in session.list_devices()]


def test_a_session_has_all_gpus_as_with_tensorflow() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2, 3])
        y = tf.transpose(x, name="y")
        with tf.Session(config=tf.ConfigProto(log_device_placement=False)) as session:
            np.testing.assert_array_equal(session.run(y, {x: np.ones((2, 3))}), np.ones((3, 2)))
            told = {each.name[-5:]: each.memory_limit_bytes for each in session.list_devices()}
    assert told == {"CPU:0": 1 << 28, "GPU:0": MEMORY, "GPU:1": MEMORY}
    assert tf.test.is_gpu_available() and tf.test.gpu_device_name() == "/device:GPU:0"
    assert tf.test.is_built_with_cuda() and tf.sysconfig.get_build_info()["is_cuda_build"]
    assert tf.test.is_gpu_available(min_cuda_compute_capability=(7, 0))
    assert not tf.test.is_gpu_available(min_cuda_compute_capability=(99, 0))


def test_placement_is_logged(capsys: pytest.CaptureFixture[str]) -> None:
    with tf.Graph().as_default():
        y = tf.transpose(tf.zeros([2, 3]), name="y")
        with tf.Session(config=tf.ConfigProto(log_device_placement=True)) as session:
            session.run(y)
    assert "y: (Transpose): /job:localhost/replica:0/task:0/device:GPU:0" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        (tf.ConfigProto(device_count={"GPU": 0}), ["CPU:0"]),
        (tf.ConfigProto(device_count={"GPU": 1}), ["CPU:0", "GPU:0"]),
        (tf.ConfigProto(device_count={"GPU": 9, "CPU": 2}), ["CPU:0", "CPU:1", "GPU:0", "GPU:1"]),
        (tf.ConfigProto(gpu_options=tf.GPUOptions(visible_device_list="1")), ["CPU:0", "GPU:0"]),
    ],
)
def test_how_many(config: tf.ConfigProto, wanted: list[str]) -> None:
    assert devices(config) == wanted


def test_options_reach_the_device() -> None:
    options = tf.GPUOptions(per_process_gpu_memory_fraction=0.25, allow_growth=True, visible_device_list="1,0")
    assert devices(tf.ConfigProto(gpu_options=options)) == ["CPU:0", "GPU:0", "GPU:1"]
    assert device.device(0).pool.budget.limit == MEMORY // 4
    assert settings.number_of(0) == 1 and settings.grows()


def test_what_is_said_by_tf_config() -> None:
    first, second = tf.config.list_physical_devices("GPU")
    assert (first.name, second.device_type) == ("/physical_device:GPU:0", "GPU")
    assert [each.name for each in tf.config.list_logical_devices("GPU")] == ["/device:GPU:0", "/device:GPU:1"]
    tf.config.set_visible_devices([second], "GPU")
    tf.config.experimental.set_memory_growth(second, True)
    tf.config.set_logical_device_configuration(second, [tf.config.LogicalDeviceConfiguration(memory_limit=1)])
    tf.config.experimental.enable_op_determinism()
    assert tf.config.get_visible_devices("GPU") == [second]
    assert tf.config.experimental.get_memory_growth(second) is True
    assert tf.config.get_logical_device_configuration(second)[0].memory_limit == 1
    assert devices() == ["CPU:0", "GPU:0"]
    assert settings.number_of(0) == 1
    assert device.device(0).pool.budget.limit == 1 << 20 and device.device(0).deterministic
    tf.config.set_visible_devices([], "GPU")
    assert tf.config.list_logical_devices("GPU") == [] and devices() == ["CPU:0"]
    with pytest.raises(tf.errors.UnimplementedError, match="a GPU is one here"):
        tf.config.set_logical_device_configuration(first, [tf.config.LogicalDeviceConfiguration(memory_limit=1)] * 2)
    with pytest.raises(ValueError, match="is no CPU"):
        tf.config.set_visible_devices([first], "CPU")
