# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.train.SessionManager: sessions that are ready, by the operations of a graph that say how."""

from __future__ import annotations

import math
import time
from contextlib import suppress
from typing import Any

from toolkit.client.construction import context
from toolkit.errors import DeadlineExceededError, FailedPreconditionError, GraphmillError
from toolkit.tensorflow.deprecation import log
from toolkit.tensorflow.families.framework.session import Session


class SessionManager:
    """Makes sessions whose variables are restored from a checkpoint, initialized, or made by somebody else.

    Args:
        local_init_op: run in every session, once `ready_for_local_init_op` lists nothing.
        ready_op, ready_for_local_init_op: tensors that list the names of variables without a value.
        recovery_wait_secs: seconds between two looks at what is waited for.
    """

    def __init__(
        self, local_init_op: Any = None, ready_op: Any = None, ready_for_local_init_op: Any = None, graph: Any = None,
        recovery_wait_secs: float = 30, local_init_run_options: Any = None, local_init_feed_dict: Any = None,
    ):  # fmt: skip
        if ready_for_local_init_op is not None and local_init_op is None:
            raise ValueError("ready_for_local_init_op says when local_init_op may run; give that, too")
        self._local_init_op = local_init_op
        self._ready_op = ready_op
        self._ready_for_local_init_op = ready_for_local_init_op
        self._graph = context.get_default_graph() if graph is None else graph
        self._wait_secs = recovery_wait_secs
        self._local_options, self._local_feeds = local_init_run_options, local_init_feed_dict

    def prepare_session(
        self, master: str, init_op: Any = None, saver: Any = None, checkpoint_dir: Any = None,
        checkpoint_filename_with_path: Any = None, wait_for_checkpoint: bool = False, max_wait_secs: float = 7200,
        config: Any = None, init_feed_dict: Any = None, init_fn: Any = None,
    ) -> Any:  # fmt: skip
        """A session that is ready: restored from a checkpoint where there is one, else initialized.

        Raises:
            RuntimeError: there is nothing to restore and nothing to initialize with, or variables have no value yet.
            ValueError: both a folder and a checkpoint are given.
        """
        session, restored = self._restored(
            master, saver, checkpoint_dir, checkpoint_filename_with_path, wait_for_checkpoint, max_wait_secs, config
        )
        try:
            if not restored:
                if init_op is None and not init_fn and self._local_init_op is None:
                    raise RuntimeError(
                        "there is no checkpoint to restore; give init_op, init_fn or local_init_op to initialize with"
                    )
                if init_op is not None:
                    session.run(init_op, feed_dict=init_feed_dict)
                if init_fn:
                    init_fn(session)
            missing = self._try_local_init(session)
            if missing is None:
                missing = _missing(self._ready_op, session)
            if missing is not None:
                how = f"restoring {restored}" if restored else f"the init op {getattr(init_op, 'name', init_op)}"
                raise RuntimeError(f"variables have no value after {how}: {missing}")
        except BaseException:
            session.close()
            raise
        return session

    def recover_session(
        self, master: str, saver: Any = None, checkpoint_dir: Any = None, checkpoint_filename_with_path: Any = None,
        wait_for_checkpoint: bool = False, max_wait_secs: float = 7200, config: Any = None,
    ) -> tuple[Any, bool]:  # fmt: skip
        """A session, and whether it was restored and is ready."""
        session, restored = self._restored(
            master, saver, checkpoint_dir, checkpoint_filename_with_path, wait_for_checkpoint, max_wait_secs, config
        )
        missing = self._try_local_init(session)
        if not restored:
            return session, False
        if missing is None:
            missing = _missing(self._ready_op, session)
        if missing is not None:
            log().info("variables have no value after restoring %s: %s", restored, missing)
        return session, missing is None

    def wait_for_session(self, master: str, config: Any = None, max_wait_secs: Any = math.inf) -> Any:
        """A session whose variables, which it shares through `master`, somebody else has initialized.

        Raises:
            DeadlineExceededError: nobody did in time.
        """
        deadline = time.monotonic() + (math.inf if max_wait_secs is None else max_wait_secs)
        while True:
            session = Session(master, graph=self._graph, config=config)
            missing = self._try_local_init(session)
            if missing is None:
                missing = _missing(self._ready_op, session)
                if missing is None:
                    return session
            with suppress(GraphmillError):
                session.close()
            if time.monotonic() + self._wait_secs > deadline:
                raise DeadlineExceededError(f"after {max_wait_secs:g} s these variables have no value: {missing}")
            log().info("waiting for variables to be initialized: %s", missing)
            time.sleep(self._wait_secs)

    def _restored(
        self, master: str, saver: Any, folder: Any, checkpoint: Any, wait: bool, max_wait_secs: float, config: Any
    ) -> tuple[Any, str | None]:
        """A session, and the checkpoint that it was restored from."""
        from toolkit.tensorflow.families.train.saver import get_checkpoint_state

        if folder and checkpoint:
            raise ValueError("give one of checkpoint_dir and checkpoint_filename_with_path, not both")
        session = Session(master, graph=self._graph, config=config)
        try:
            if not saver or not (folder or checkpoint):
                return session, None
            if checkpoint:
                saver.restore(session, checkpoint)
                return session, checkpoint
            deadline = time.monotonic() + max_wait_secs
            while (state := get_checkpoint_state(folder)) is None or not state.model_checkpoint_path:
                if not wait or time.monotonic() >= deadline:
                    return session, None
                log().info("waiting for a checkpoint in %s", folder)
                time.sleep(self._wait_secs)
            saver.restore(session, state.model_checkpoint_path)
            saver.recover_last_checkpoints(list(state.all_model_checkpoint_paths))
            return session, state.model_checkpoint_path
        except BaseException:
            session.close()
            raise

    def _try_local_init(self, session: Any) -> str | None:
        """Run the local initialization; returns what keeps it from running, or None."""
        if self._local_init_op is None:
            return None
        missing = _missing(self._ready_for_local_init_op, session)
        if missing is None:
            session.run(self._local_init_op, feed_dict=self._local_feeds, options=self._local_options)
        return missing


def _missing(ready_op: Any, session: Any) -> str | None:
    """The names that an operation lists as not initialized; None where it lists none."""
    if ready_op is None:
        return None
    try:
        value = session.run(ready_op)
    except FailedPreconditionError as error:
        return error.message
    if value is None or value.dtype.kind == "i" or value.size == 0:
        return None
    return ", ".join(name.decode() for name in value.ravel().tolist())
