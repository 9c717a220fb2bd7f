# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""Checkpoints as files: state files, times, removal, waiting for new ones, variables that start with them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

from schemas import checkpoint_state_pb2
from toolkit.errors import GraphmillError
from toolkit.formats.bundle import folder, state
from toolkit.tensorflow.families.train.saver import latest_checkpoint


def generate_checkpoint_state_proto(
    save_dir: str, model_checkpoint_path: str, all_model_checkpoint_paths: Any = None,
    all_model_checkpoint_timestamps: Any = None, last_preserved_timestamp: Any = None,
) -> checkpoint_state_pb2.CheckpointState:  # fmt: skip
    """What a folder's state file says; paths become relative to the folder, where both are relative."""
    listed = list(all_model_checkpoint_paths or [])
    if not listed or listed[-1] != model_checkpoint_path:
        listed.append(model_checkpoint_path)
    times = list(all_model_checkpoint_timestamps or [])
    if times and len(times) != len(listed):
        raise ValueError(f"there are {len(times)} timestamps for {len(listed)} checkpoints")

    def shown(path: str) -> str:
        return path if os.path.isabs(save_dir) or os.path.isabs(path) else os.path.relpath(path, save_dir)

    message = checkpoint_state_pb2.CheckpointState(
        model_checkpoint_path=shown(model_checkpoint_path),
        all_model_checkpoint_paths=[shown(path) for path in listed],
        all_model_checkpoint_timestamps=times,
    )
    if last_preserved_timestamp is not None:
        message.last_preserved_timestamp = last_preserved_timestamp
    return message


def update_checkpoint_state(
    save_dir: str, model_checkpoint_path: str, all_model_checkpoint_paths: Any = None, latest_filename: Any = None,
    all_model_checkpoint_timestamps: Any = None, last_preserved_timestamp: Any = None,
) -> None:  # fmt: skip
    """Replace a folder's state file."""
    try:
        state.write_state(
            save_dir, model_checkpoint_path, all_model_checkpoint_paths or (), all_model_checkpoint_timestamps or (),
            last_preserved_timestamp, latest_filename,
        )  # fmt: skip
    except GraphmillError as error:
        raise ValueError(str(error)) from None


def get_checkpoint_mtimes(checkpoint_prefixes: Any) -> list[float]:
    """When the checkpoints that are there were written, in seconds since the epoch."""
    found: list[float] = []
    for prefix in checkpoint_prefixes:
        path = next((each for each in (f"{prefix}.index", prefix) if os.path.isfile(each)), None)
        if path is not None:
            found.append(os.stat(path).st_mtime)
    return found


def remove_checkpoint(
    checkpoint_prefix: str, checkpoint_format_version: int = 2, meta_graph_suffix: str = "meta"
) -> None:
    """Remove a checkpoint's files, and its MetaGraph."""
    meta = f"{checkpoint_prefix}.{meta_graph_suffix}"
    if os.path.isfile(meta):
        os.remove(meta)
    folder.remove_checkpoint(checkpoint_prefix)


def wait_for_new_checkpoint(
    checkpoint_dir: str, last_checkpoint: Any = None, seconds_to_sleep: float = 1, timeout: Any = None
) -> str | None:
    """The newest checkpoint of a folder once it is another one; None after `timeout` seconds without."""
    end = None if timeout is None else time.time() + timeout
    while True:
        found = latest_checkpoint(checkpoint_dir)
        if found is not None and found != last_checkpoint:
            return found
        if end is not None and time.time() + seconds_to_sleep > end:
            return None
        time.sleep(seconds_to_sleep)


def checkpoints_iterator(
    checkpoint_dir: str, min_interval_secs: float = 0, timeout: Any = None, timeout_fn: Callable[[], bool] | None = None
) -> Iterator[str]:
    """Each new checkpoint of a folder, until none comes for `timeout` seconds, or `timeout_fn` then returns True."""
    last: str | None = None
    while True:
        found = wait_for_new_checkpoint(checkpoint_dir, last, timeout=timeout)
        if found is not None:
            last, start = found, time.time()
            yield found
            time.sleep(max(0.0, start + min_interval_secs - time.time()))
        elif timeout_fn is None:
            return
        if timeout_fn is not None and timeout_fn():
            return
