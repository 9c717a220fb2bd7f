"""Errors that users meet.

Everything a user can cause is a `GraphmillError`: one message, an exit code, no traceback.  Failures of a
running step are `OpError`s with TensorFlow's canonical status code, so that training loops can tell
"out of range" (the normal end of input) from "aborted" (try again).  Anything else that escapes is a bug of ours
(`BugError`): one line as well, and its traceback on request.
"""

from __future__ import annotations

import difflib
import errno
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any

#: environment variable: show the traceback of an internal error
TRACEBACK = "GRAPHMILL_TRACEBACK"


#: how standard input is called in messages
STDIN_NAME = "standard input"


#: temporary folders to the file that was unpacked there
_PLACES: dict[str, str] = {}


def name_place(folder: str, shown: str | None) -> None:
    """From now on messages call a temporary folder by the file that was unpacked there; None: no longer."""
    if shown is None:
        _PLACES.pop(folder, None)
    else:
        _PLACES[folder] = shown


def source_name(source: str) -> str:
    """What messages call a file that is read: its path, or "standard input" for "-".

    What lies in a folder that was unpacked is called by the archive and the path in it.
    """
    for folder, shown in _PLACES.items():
        if source == folder:
            return shown
        if source.startswith(folder + "/"):
            return f"{shown}: {source.removeprefix(folder + '/')}"
    return STDIN_NAME if source == "-" else source


class GraphmillError(Exception):
    """A mistake in the input or the usage.

    Args:
        message: what is wrong, what was expected, what to do; one sentence or two.
        file: the file it is in, when known.
        node: the node it is about, when known.

    Attributes:
        option: the option of the command line whose value is wrong, "--fetch"; see `about_option`.
    """

    exit_code = 2

    def __init__(self, message: str, *, file: str | None = None, node: str | None = None):
        super().__init__(message)
        self.message = message
        self.file = file
        self.node = node
        self.option: str | None = None

    def __str__(self) -> str:
        where = [self.option] if self.option else []
        if self.file:
            where.append(source_name(self.file))
        if self.node:
            where.append(f"node '{self.node}'")
        return ": ".join([*where, self.message])

    def at(self, *, file: str | None = None, node: str | None = None) -> GraphmillError:
        """Fill in where it happened, without overwriting what is already known; returns self.

        A mistake in an option is not blamed on the file that is read at the time.
        """
        if self.option is None:
            self.file = self.file or file
        self.node = self.node or node
        return self


@contextmanager
def about_option(option: str) -> Generator[None]:
    """Within this, what is wrong is the value of an option: the message begins with its name.

    A node that is wrong is the file's mistake, not that of the option that happens to need it. Steps are not to be run
    in here: what fails in them is no option's fault.
    """
    try:
        yield
    except GraphmillError as error:
        if error.node is None:
            error.option = error.option or option
        raise


class UsageError(GraphmillError):
    """Options or arguments that do not fit together or name things that do not exist."""


class FormatError(GraphmillError):
    """Bytes that are not what they should be: truncated, damaged, of another kind."""


class ArgumentTypeError(UsageError, TypeError):
    """An argument of a type that says nothing here; programs catch TensorFlow's TypeError."""


class ArgumentValueError(UsageError, ValueError):
    """An argument of the right type that does not fit; programs catch TensorFlow's ValueError."""


class ClosedError(UsageError, RuntimeError):
    """What is closed is used."""


class GraphError(GraphmillError, ValueError):
    """A graph that breaks the rules: unknown op, dangling input, duplicate name, cycle, wrong dtype.

    Programs that make graphs catch TensorFlow's ValueError.
    """


class NoValueError(GraphError, TypeError):
    """A tensor of a graph is used as if it had a value: iterated over, in an `if`."""


class OperandTypeError(GraphError, TypeError):
    """An operation is given a tensor of a type that it does not take."""


class FinalizedError(GraphError, RuntimeError):
    """A graph that takes no more operations is given one."""


class RegisteredError(GraphError, KeyError):
    """A name is registered for something already; a `KeyError`, too, for programs catch it as that."""

    def __str__(self) -> str:
        return GraphError.__str__(self)


class VariableError(GraphError):
    """A variable that is there already, or is not, or is another than asked for."""


class SaverError(ArgumentValueError):
    """What a saver cannot save, or not under these names."""


class MultipleMistakesError(GraphmillError):
    """Several mistakes of one file, in the order in which they stand there.

    Args:
        errors: at least one.
    """

    def __init__(self, errors: Sequence[GraphmillError]):
        first, rest = errors[0], len(errors) - 1
        super().__init__(first.message + (f" (and {rest} more)" if rest else ""), file=first.file, node=first.node)
        self.errors = tuple(errors)


class BugError(GraphmillError):
    """A mistake of graphmill itself: something went wrong that no input should be able to cause.

    Args:
        where: what was at work ("the shape function of Conv2D").
        cause: what it raised.
    """

    exit_code = 70

    def __init__(self, where: str, cause: BaseException, *, node: str | None = None):
        what = str(cause)
        super().__init__(
            f"internal error in {where}: {type(cause).__name__}{f': {what[:200]}' if what else ''}; this is a bug of "
            f"graphmill, please report it (with {TRACEBACK}=1 it shows where)",
            node=node,
        )


class OpError(GraphmillError):
    """A step that failed while running, with a canonical status code.

    The codes and their names are those of google.rpc.Code, which TensorFlow uses.
    """

    exit_code = 3
    code = 2
    status = "UNKNOWN"
    message: str
    node_def: Any
    op: Any
    experimental_payloads: dict[str, Any]

    def __init__(self, *arguments: Any, file: str | None = None, node: str | None = None, **named: Any):
        """Of a message; or of (node_def, op, message), as programs raise TensorFlow's."""
        node_def, op, message, *_ = arguments if len(arguments) >= 3 else (None, None, *arguments, None)
        message = named.pop("message", message)
        self.node_def = named.pop("node_def", node_def)
        self.op = named.pop("op", op)
        self.experimental_payloads = {}
        node = node or getattr(self.op, "name", None) or getattr(self.node_def, "name", None)
        super().__init__("" if message is None else str(message), file=file, node=node)

    @property
    def error_code(self) -> int:
        """The canonical code."""
        return self.code


class CancelledError(OpError):
    code, status = 1, "CANCELLED"


class UnknownError(OpError):
    code, status = 2, "UNKNOWN"


class InvalidArgumentError(OpError):
    code, status = 3, "INVALID_ARGUMENT"


class InvalidGraphError(GraphError, InvalidArgumentError):
    """A graph in which an op's rules of attributes or shapes are broken, told before any of it runs.

    The status is that of an op that is given wrong values; the fault is the file's.
    """

    exit_code = 2


class DeadlineExceededError(OpError):
    code, status = 4, "DEADLINE_EXCEEDED"


class NotFoundError(OpError):
    code, status = 5, "NOT_FOUND"


class AlreadyExistsError(OpError):
    code, status = 6, "ALREADY_EXISTS"


class PermissionDeniedError(OpError):
    code, status = 7, "PERMISSION_DENIED"


class ResourceExhaustedError(OpError):
    code, status = 8, "RESOURCE_EXHAUSTED"


class FailedPreconditionError(OpError):
    code, status = 9, "FAILED_PRECONDITION"


class AbortedError(OpError):
    code, status = 10, "ABORTED"


class GivenUpError(AbortedError):
    """A node of the graph ended its step for good (Abort): the session is there still, and a new one ends alike."""


class OutOfRangeError(OpError):
    code, status = 11, "OUT_OF_RANGE"


class UnimplementedError(OpError):
    code, status = 12, "UNIMPLEMENTED"


class InternalError(OpError):
    code, status = 13, "INTERNAL"


class UnavailableError(OpError):
    code, status = 14, "UNAVAILABLE"


class DataLossError(OpError):
    code, status = 15, "DATA_LOSS"


BY_CODE: dict[int, type[OpError]] = {
    cls.code: cls
    for cls in (
        CancelledError, UnknownError, InvalidArgumentError, DeadlineExceededError, NotFoundError,
        AlreadyExistsError, PermissionDeniedError, ResourceExhaustedError, FailedPreconditionError,
        AbortedError, OutOfRangeError, UnimplementedError, InternalError, UnavailableError, DataLossError,
    )
}  # fmt: skip


#: statuses that, outside of a running step, say something about the input: a name, a file, a permission
ABOUT_INPUT: tuple[type[OpError], ...] = (
    InvalidArgumentError, NotFoundError, AlreadyExistsError, PermissionDeniedError, FailedPreconditionError,
    OutOfRangeError, UnimplementedError, DataLossError,
)  # fmt: skip


_OS_STATUSES: dict[int, type[OpError]] = {
    errno.ENOENT: NotFoundError,
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), PermissionDeniedError),
    **dict.fromkeys((errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENOTEMPTY), FailedPreconditionError),
    **dict.fromkeys((errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL), InvalidArgumentError),
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EMFILE, errno.ENFILE), ResourceExhaustedError),
}


def os_status(error: OSError) -> type[OpError]:
    """The status of an operating system error: one of ABOUT_INPUT where the name is wrong, another where the machine
    failed (a full disk, a broken device)."""
    if isinstance(error, FileNotFoundError):  # stores raise it without a number
        return NotFoundError
    return _OS_STATUSES.get(error.errno or 0, UnknownError)


def did_you_mean(name: str, candidates: Iterable[str], count: int = 3, *, then: str = "") -> str:
    """A hint such as "; did you mean 'conv1/kernel'?", or "" when nothing is close, as a whole or in its last part.

    Args:
        then: what is said whether or not something is close ("expected a, b"), as part of the sentence or as the next.
    """
    known = list(candidates)
    close = difflib.get_close_matches(name, _few_near(name, known), n=count, cutoff=0.6)
    if not close:
        last = name.rpartition("/")[2].lower()
        close = [each for each in known if last and each.rpartition("/")[2].lower() == last][:count]
    return hint(close, then)


#: names that are compared with one that there is not: a comparison takes 10 microseconds, so these take 40 milliseconds
_COMPARED = 4096


def _few_near(name: str, known: list[str]) -> list[str]:
    """Of many names those that begin or end as this one does, which a name with one mistake in it does; of many of
    these, those whose length is nearest."""
    if len(known) <= _COMPARED:
        return known
    half = len(name) // 2
    ends = (name[:half], name[len(name) - half :])
    alike = [each for each in known if each.startswith(ends[0]) or each.endswith(ends[1])]
    if len(alike) > _COMPARED:
        alike = sorted(alike, key=lambda each: abs(len(each) - len(name)))[:_COMPARED]
    return alike


class Hints:
    """`did_you_mean` for the first of many mistakes; each is a search through all names, and nobody reads them all."""

    MOST = 50

    def __init__(self) -> None:
        self._left = self.MOST

    def __call__(self, name: str, candidates: Iterable[str]) -> str:
        if not self._left:
            return ""
        self._left -= 1
        return did_you_mean(name, candidates)


def hint(close: Sequence[str], then: str = "") -> str:
    """The hint that names what is close; `then` as in `did_you_mean`."""
    if not close:
        return f"; {then}" if then else ""
    question = "; did you mean " + " or ".join(f"'{c}'" for c in close) + "?"
    return f"{question} {then[0].upper()}{then[1:]}" if then else question
