"""The oracle itself: TensorFlow's client over TensorFlow's servers, as the other tests rely on it."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

from tests.cluster.tensorflow_servers import Cluster, free_ports, start

pytestmark = pytest.mark.tensorflow


def test_a_step_over_two_tasks(tf: ModuleType, tensorflow_cluster: Cluster) -> None:
    v1 = tf.compat.v1
    with v1.Graph().as_default():
        with v1.device("/job:ps/task:0"):
            held = v1.get_variable("oracle_held", [2, 2], initializer=v1.ones_initializer(), use_resource=False)
        with v1.device("/job:worker/task:1"):
            product = v1.matmul(held, held)
        with v1.Session(tensorflow_cluster.target("worker", 0)) as session:
            session.run(held.initializer)
            np.testing.assert_array_equal(session.run(product), np.full((2, 2), 2, np.float32))


def test_a_task_that_comes_back_has_nothing(tf: ModuleType) -> None:
    v1 = tf.compat.v1
    with start({"only": 1}) as cluster, v1.Graph().as_default():
        held = v1.get_variable("held", [], initializer=v1.ones_initializer(), use_resource=False)
        with v1.Session(cluster.target("only")) as session:
            session.run(held.initializer)
        cluster.restart("only")
        with v1.Session(cluster.target("only")) as session, pytest.raises(tf.errors.FailedPreconditionError):
            session.run(held)


def test_ports_differ() -> None:
    assert len(set(free_ports(20))) == 20
