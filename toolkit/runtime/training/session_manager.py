"""Making sessions that are ready to train: restored from the newest usable checkpoint, or initialised."""

from __future__ import annotations

import time
from collections.abc import Callable

from toolkit.errors import DeadlineExceededError, GraphmillError, UsageError
from toolkit.formats import bundle
from toolkit.formats.bundle import paths
from toolkit.runtime.session import Session
from toolkit.runtime.training.scaffold import Scaffold, run_in_dependency_order


class SessionManager:
    """Creates ready sessions (tf.compat.v1.train.SessionManager).

    Args:
        scaffold: the parts of the graph.
        make_session: opens a session on the graph.
        warn: takes one line about a checkpoint that could not be used.
    """

    def __init__(self, scaffold: Scaffold, make_session: Callable[[], Session], warn: Callable[[str], None]):
        self._scaffold = scaffold
        self._make_session = make_session
        self._warn = warn

    def prepare_session(
        self, checkpoint_dir: str | None = None, checkpoint: str | None = None
    ) -> tuple[Session, str | None]:
        """The chief's way: restore, else initialise.

        Args:
            checkpoint_dir: use the newest checkpoint in it that can be read.
            checkpoint: use this one where the folder has none (to start from another model); a failure is an error.

        Returns:
            the session, and the prefix it was restored from or None.

        Raises:
            UsageError: there is nothing to restore from and the graph does not say how to initialise itself.
            OpError: every checkpoint there is failed; the newest one's error is raised.
        """
        session = self._make_session()
        try:
            restored = self._restore(session, checkpoint_dir, checkpoint)
            if restored is None:
                self._initialize(session)
            self._finish(session)
        except BaseException:
            session.close()
            raise
        return session, restored

    def wait_for_session(self, max_wait_secs: float = 7200, poll_secs: float = 0.5) -> Session:
        """A worker's way: wait until the chief, whose variables this session shares, has initialised them.

        Raises:
            DeadlineExceededError: it took too long.
        """
        deadline = time.monotonic() + max_wait_secs
        while True:
            session = self._make_session()
            try:
                missing = self._scaffold.uninitialized_for_local_init(session)
                if not missing:
                    run_in_dependency_order(session, self._scaffold.local_init_ops)
                    missing = self._scaffold.uninitialized(session)
            except BaseException:
                session.close()
                raise
            if not missing:
                return session
            session.close()
            if time.monotonic() + poll_secs > deadline:
                raise DeadlineExceededError(
                    f"waited {max_wait_secs:g} s for the chief to initialise the variables: {_listed(missing)}"
                )
            time.sleep(poll_secs)

    def _finish(self, session: Session) -> None:
        """What a session needs beside its global variables."""
        missing = self._scaffold.uninitialized_for_local_init(session)
        if not missing:
            run_in_dependency_order(session, self._scaffold.local_init_ops)
            missing = self._scaffold.uninitialized(session)
        if missing:
            raise UsageError(f"variables are still not initialised: {_listed(missing)}")

    def _initialize(self, session: Session) -> None:
        if not self._scaffold.init_ops and not self._scaffold.local_init_ops:
            raise UsageError(
                "the graph lists no init op and no variables to initialise; name its init operation with --target"
            )
        run_in_dependency_order(session, self._scaffold.init_ops)

    def _restore(self, session: Session, folder: str | None, checkpoint: str | None) -> str | None:
        found = self._latest(session, folder)
        if found is None and checkpoint is not None:
            return self._scaffold.saver.restore_given(session, checkpoint)
        return found

    def _latest(self, session: Session, folder: str | None) -> str | None:
        """Restore the newest checkpoint of a folder that can be used."""
        if folder is None or not paths.is_folder(folder):
            return None
        saver = self._scaffold.saver
        state = bundle.read_state(folder)
        first_error: GraphmillError | None = None
        for prefix in reversed(state.all_paths if state is not None else []):
            try:
                if not paths.is_inside(folder, prefix):
                    raise UsageError("it is outside of the folder whose state file names it")
                saver.restore(session, prefix)
            except GraphmillError as error:
                self._warn(f"cannot use the checkpoint {prefix}: {error}")
                first_error = first_error or error
                continue
            saver.recover(folder)
            return prefix
        if first_error is not None:
            raise first_error
        return None


def _listed(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f", ... ({len(names) - 5} more)" if len(names) > 5 else "")
