"""Fixtures for tests over several processes."""

from __future__ import annotations

from tests.cluster.tensorflow_servers import tensorflow_cluster

__all__ = ["tensorflow_cluster"]
