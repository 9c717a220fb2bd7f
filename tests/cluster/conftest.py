"""Fixtures for tests over several processes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster import mixed_clusters
from tests.cluster.tensorflow_servers import tensorflow_cluster

__all__ = ["graphmill_cluster", "servers", "tensorflow_cluster"]


@pytest.fixture(scope="package")
def graphmill_cluster() -> Iterator[mixed_clusters.MixedCluster]:
    """One parameter server and two workers of ours, for all tests of the folder."""
    pytest.importorskip("grpc")
    with mixed_clusters.start({"ps": 1, "worker": 2}) as cluster:
        yield cluster


@pytest.fixture(scope="package", params=["tensorflow", "graphmill"])
def servers(request: pytest.FixtureRequest) -> Any:
    """One parameter server and two workers, of TensorFlow and then of ours: what our client gets is the same."""
    return request.getfixturevalue(f"{request.param}_cluster")
