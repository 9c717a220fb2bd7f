"""A task of TensorFlow's: `python -m tests.cluster.tensorflow_server_process SETTINGS` serves until its input ends.

SETTINGS is JSON: {"jobs": {job: [address, ...]}, "job": ..., "task": ..., "config": {...}, "filters": [...]}.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import Any


def main() -> None:
    settings: dict[str, Any] = json.loads(sys.argv[1])
    from google.protobuf import json_format

    tf: Any = importlib.import_module("tensorflow").compat.v1
    config = json_format.ParseDict(settings.get("config", {}), tf.ConfigProto())
    config.device_filters.extend(settings.get("filters", ()))
    config.intra_op_parallelism_threads = config.intra_op_parallelism_threads or 1  # many servers share the machine
    server = tf.train.Server(settings["jobs"], job_name=settings["job"], task_index=settings["task"], config=config)
    print("ready", flush=True)
    sys.stdin.read()
    del server
    os._exit(0)  # servers of TensorFlow do not stop


if __name__ == "__main__":
    main()
