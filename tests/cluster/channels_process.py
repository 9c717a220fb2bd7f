"""A task of a cluster file with so many channels to the others: FILE JOB CHANNELS; serves until its input ends."""

from __future__ import annotations

import os
import sys

from schemas import config_pb2
from toolkit.cluster.server import ClusterServer, cluster_def, server_def
from toolkit.formats.settings.cluster import read_cluster


def main() -> None:
    file, job, channels = sys.argv[1:]
    config = config_pb2.ConfigProto(rpc_options={"num_channels_per_target": int(channels)})
    server = ClusterServer(server_def(cluster_def(read_cluster(file)), job, 0, config))
    server.start()
    print("ready", flush=True)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
