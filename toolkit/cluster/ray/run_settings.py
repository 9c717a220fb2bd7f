"""What `graphmill run --engine` tells its actors."""

from __future__ import annotations

import os
from pathlib import Path

from toolkit.cluster.ray.actor import ActorSettings
from toolkit.formats.settings.cluster import Cluster, Task, read_cluster
from toolkit.graph import plugins
from toolkit.graph.device import DeviceSpec
from toolkit.runtime.jobs.options import RunOptions
from toolkit.runtime.jobs.trust import policy_of


def cluster_of(options: RunOptions) -> Cluster:
    """The tasks that --cluster names; without it one, /job:worker/task:0.

    Raises:
        FormatError: the file is no cluster.
    """
    if options.cluster is not None:
        return read_cluster(options.cluster)
    return Cluster((Task("worker", 0, "", {"CPU": 1}),), DeviceSpec("worker", 0, 0))


def actor_settings(options: RunOptions, source: str | Path) -> ActorSettings:
    """What actors are told.

    Args:
        source: the model's file or folder.

    Raises:
        GraphmillError: what is allowed, or the configuration, is not understood.
    """
    loaded = [*(each.name for each in plugins.loaded()), *map(str, plugins.folders())]
    return ActorSettings(
        policy_of(source, options), options.precision, options.threads, options.inter_op or 0, tuple(loaded),
        os.getcwd(),  # noqa: PTH109 -- a text
    )  # fmt: skip
