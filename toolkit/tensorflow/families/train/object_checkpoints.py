# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.train.Checkpoint, CheckpointManager and CheckpointOptions: checkpoints of objects, in sessions."""

from __future__ import annotations

import inspect
import os
import time
from typing import Any

from toolkit.client import ops
from toolkit.client.construction import session_stack
from toolkit.client.construction.convert import constant
from toolkit.client.trackables import Trackable, is_tracked
from toolkit.client.variables.base import BaseVariable
from toolkit.client.variables.creation import Variable
from toolkit.formats.bundle import state as states
from toolkit.formats.bundle.folder import remove_checkpoint
from toolkit.graph import dtypes
from toolkit.runtime.saving import object_checkpoints as runtime
from toolkit.tensorflow.deprecation import log

_SECONDS_PER_HOUR = 3600.0


class CheckpointOptions:
    """How checkpoints are written and read.

    What is said of devices, shards and threads of their own changes nothing here: values are fetched, and one file
    holds them.
    """

    def __init__(
        self, experimental_io_device: Any = None, experimental_enable_async_checkpoint: bool = False,
        experimental_write_callbacks: Any = None, enable_async: bool = False,
        experimental_skip_slot_variables: bool = False, experimental_sharding_callback: Any = None,
    ):  # fmt: skip
        for callback in experimental_write_callbacks or ():
            if not callable(callback) or len(inspect.signature(callback).parameters) > 1:
                raise AssertionError(f"{callback!r}: a callback is a function of the path, or of nothing")
        self.experimental_io_device = experimental_io_device
        self.enable_async = enable_async or experimental_enable_async_checkpoint
        self.experimental_write_callbacks = experimental_write_callbacks
        self.experimental_skip_slot_variables = experimental_skip_slot_variables
        self.experimental_sharding_callback = experimental_sharding_callback

    @property
    def experimental_enable_async_checkpoint(self) -> bool:
        return self.enable_async


class Checkpoint(Trackable):
    """Objects that are saved together, each under the name that it is given here or by an attribute set later.

    Raises:
        ValueError: one is no variable, module, layer or optimizer, nor a list or mapping of such.
    """

    _UNTRACKED = frozenset({"_assign"})

    def __init__(self, **kwargs: Any):
        for name, value in sorted(kwargs.items()):
            if not is_tracked(value) and not isinstance(value, Trackable | list | tuple | dict):
                raise ValueError(
                    f"{name}: expected a variable, module, layer, optimizer, or a list or mapping, got {value!r}"
                )
            setattr(self, name, value)
        self._save_counter: BaseVariable | None = None
        self._assign: Any = None

    def tracked_parts(self) -> dict[str, Any]:
        parts = super().tracked_parts()
        if "_save_counter" in parts:
            parts["save_counter"] = parts.pop("_save_counter")
        return parts

    @property
    def save_counter(self) -> BaseVariable:
        """How often `save` was called; a variable, made when it is first asked for."""
        if self._save_counter is None:
            self._save_counter = Variable(0, False, name="save_counter", dtype=dtypes.int64, use_resource=True)
        return self._save_counter

    def write(self, file_prefix: str, session: Any = None, options: Any = None) -> str:
        """Write a checkpoint of this very name, without counting it; returns the name.

        Raises:
            ValueError: there is no session.
        """
        prefix = os.fspath(file_prefix)
        written = runtime.write(self, prefix, runtime.session_of(session, self, "write"))
        for callback in (options.experimental_write_callbacks if options is not None else None) or ():
            callback(*[written][: len(inspect.signature(callback).parameters)])
        return written

    def save(self, file_prefix: str, session: Any = None, options: Any = None) -> str:
        """Write a checkpoint `PREFIX-N`, the N-th, and make it the latest of its folder; returns its name.

        Raises:
            ValueError: there is no session.
        """
        running = runtime.session_of(session, self, "save")
        number = self._counted(running)
        prefix = os.fspath(file_prefix)
        written = self.write(f"{prefix}-{number}", running, options)
        states.write_state(os.path.dirname(prefix), written, [written], relative=True)
        return written

    def _counted(self, session: Any) -> int:
        """One more than before, in the session, too."""
        if self._save_counter is None:
            with session.graph.as_default():
                start = self.save_counter.initializer
            session.run(start)
        if self._assign is None:
            with self.save_counter.graph.as_default():
                self._assign = ops.assign_add_variable_op(self.save_counter.handle, constant(1, dtypes.int64))
        session.run(self._assign)
        return int(session.run(self.save_counter))

    def restore(self, save_path: Any) -> Any:
        """What reads a checkpoint (its prefix; None: there is none yet) once a session is given to its methods.

        Raises:
            NotFoundError: there is no such checkpoint.
        """
        return self._loading(save_path, None)

    def _loading(self, save_path: Any, options: Any) -> Any:
        if save_path is None:
            status: Any = runtime.NothingToLoad(self)
        else:
            skip = bool(options is not None and options.experimental_skip_slot_variables)
            status = runtime.Loading(self, os.fspath(save_path), skip)
        _ = self.save_counter
        return status


class CheckpointManager:
    """Writes numbered checkpoints into a folder, and removes those that are too many.

    Args:
        checkpoint: a Checkpoint.
        max_to_keep: how many stay; None keeps all.
        keep_checkpoint_every_n_hours: of those that would go, one for every so many hours stays.
        step_counter, checkpoint_interval: `save` does nothing before the counter has grown by so much.
        init_fn: called by `restore_or_initialize` where the folder has no checkpoint.

    Raises:
        ValueError: `max_to_keep` is no positive number; an interval without a counter.
    """

    def __init__(
        self, checkpoint: Checkpoint, directory: Any, max_to_keep: Any, keep_checkpoint_every_n_hours: Any = None,
        checkpoint_name: str = "ckpt", step_counter: Any = None, checkpoint_interval: Any = None, init_fn: Any = None,
        last_checkpoint_step: Any = None,
    ):  # fmt: skip
        if max_to_keep is not None and max_to_keep <= 0:
            raise ValueError(f"max_to_keep: expected a positive number, or None to keep all, got {max_to_keep}")
        if checkpoint_interval is not None and step_counter is None:
            raise ValueError("checkpoint_interval needs step_counter, which it is measured by")
        self._checkpoint = checkpoint
        self._directory = os.fspath(directory)
        self._max_to_keep = max_to_keep
        self._keep_hours = keep_checkpoint_every_n_hours
        self._prefix = os.path.join(self._directory, checkpoint_name)
        self._step_counter = step_counter
        self._interval = checkpoint_interval
        self._init_fn = init_fn
        self._last_step: Any = last_checkpoint_step
        self._kept: dict[str, float] = {}
        self._latest: str | None = None
        self._last_preserved = time.time()
        self._recover()

    def _recover(self) -> None:
        """Take over what the folder's state file lists."""
        found = states.read_state(self._directory) if os.path.isdir(self._directory) else None
        if found is None:
            return
        times = list(found.timestamps) or [time.time()] * len(found.all_paths)
        self._kept = dict(zip(found.all_paths, times, strict=False))
        self._latest = found.latest
        self._last_preserved = found.last_preserved or self._last_preserved

    @property
    def checkpoint(self) -> Checkpoint:
        return self._checkpoint

    @property
    def directory(self) -> str:
        return self._directory

    @property
    def checkpoint_interval(self) -> Any:
        return self._interval

    @property
    def latest_checkpoint(self) -> str | None:
        return self._latest

    @property
    def checkpoints(self) -> list[str]:
        """Those that are kept, oldest first."""
        return list(self._kept)

    def save(self, checkpoint_number: Any = None, check_interval: bool = True, options: Any = None) -> str | None:
        """Write one in the default session; returns its prefix, or None where it is too early for one.

        Raises:
            ValueError: there is no session.
        """
        session = runtime.session_of(None, self._checkpoint, "save")
        if self._interval is not None:
            step = self._step(session)
            if check_interval and self._last_step is not None and step - self._last_step < self._interval:
                return None
            self._last_step = step
        count = self._checkpoint._counted(session)
        number = count if checkpoint_number is None else checkpoint_number
        number = int(session.run(number)) if hasattr(number, "graph") else int(number)
        written = self._checkpoint.write(f"{self._prefix}-{number}", session, options)
        self._kept.pop(written, None)
        self._kept[written] = time.time()
        self._latest = written
        self._write_state()  # before anything goes, and once more behind it: a crash leaves a state that holds
        self._remove()
        self._write_state()
        return written

    def _step(self, session: Any) -> int:
        return int(session.run(self._step_counter)) if hasattr(self._step_counter, "graph") else int(self._step_counter)

    def _write_state(self) -> None:
        times = list(self._kept.values())
        states.write_state(
            self._directory, self._latest or "", list(self._kept), times, self._last_preserved, relative=True
        )

    def _remove(self) -> None:
        while self._max_to_keep is not None and len(self._kept) > self._max_to_keep:
            oldest = next(iter(self._kept))
            saved = self._kept.pop(oldest)
            if self._keep_hours and saved - self._keep_hours * _SECONDS_PER_HOUR >= self._last_preserved:
                self._last_preserved = saved
            else:
                remove_checkpoint(oldest, True)

    def restore_or_initialize(self) -> str | None:
        """Restore the latest checkpoint in the default session, where there is one; else call `init_fn`."""
        if self._latest is not None:
            status = self._checkpoint.restore(self._latest)
            session = session_stack.get_default_session()
            if session is not None:
                status.initialize_or_restore(session)
                if self._interval is not None:
                    self._last_step = self._step(session)
            log().info("Restoring parameters from %s", self._latest)
            return self._latest
        if self._init_fn is not None:
            self._init_fn()
        return None

    def sync(self) -> None:
        """Wait for what is still being written: nothing is, as `save` waits itself."""
