# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.logging, tf.app, tf.errors, tf.gfile, tf.test, and switches that have nothing to switch here."""

from __future__ import annotations

import fnmatch
import glob
import logging as python_logging
import os
import re
import shutil
import sys
import unittest
from collections.abc import Generator, Iterator
from typing import Any

from toolkit import errors as ours
from toolkit.tensorflow.deprecation import log as logger

# -- tf.logging -------------------------------------------------------------------------------------------------


def log(level: Any, msg: Any, *args: Any, **kwargs: Any) -> None:
    logger().log(level, msg, *args, **kwargs)


def debug(msg: Any, *args: Any, **kwargs: Any) -> None:
    logger().debug(msg, *args, **kwargs)


def info(msg: Any, *args: Any, **kwargs: Any) -> None:
    logger().info(msg, *args, **kwargs)


def warn(msg: Any, *args: Any, **kwargs: Any) -> None:
    logger().warning(msg, *args, **kwargs)


def warning(msg: Any, *args: Any, **kwargs: Any) -> None:
    logger().warning(msg, *args, **kwargs)


def error(msg: Any, *args: Any, **kwargs: Any) -> None:
    logger().error(msg, *args, **kwargs)


def fatal(msg: Any, *args: Any, **kwargs: Any) -> None:
    logger().fatal(msg, *args, **kwargs)


def vlog(level: Any, msg: Any, *args: Any, **kwargs: Any) -> None:
    logger().log(level, msg, *args, **kwargs)


def flush() -> None:
    for handler in logger().handlers:
        handler.flush()


def get_verbosity() -> int:
    return logger().getEffectiveLevel()


_LEVELS = {"DEBUG": 10, "INFO": 20, "WARN": 30, "ERROR": 40, "FATAL": 50}


def set_verbosity(v: Any) -> None:
    logger().setLevel(_LEVELS.get(v, v) if isinstance(v, str) else v)


_counts: dict[tuple[str, int], int] = {}


def _times() -> int:
    frame = sys._getframe(2)  # the line that logs
    key = frame.f_code.co_filename, frame.f_lineno
    _counts[key] = _counts.get(key, -1) + 1
    return _counts[key]


def log_every_n(level: Any, msg: Any, n: int, *args: Any) -> None:
    if _times() % n == 0:
        log(level, msg, *args)


def log_first_n(level: Any, msg: Any, n: int, *args: Any) -> None:
    if _times() < n:
        log(level, msg, *args)


def log_if(level: Any, msg: Any, condition: Any, *args: Any) -> None:
    if condition:
        log(level, msg, *args)


def TaskLevelStatusMessage(msg: Any) -> None:  # noqa: N802
    logger().error(msg)


def get_logger() -> python_logging.Logger:
    return logger()


# -- tf.app -----------------------------------------------------------------------------------------------------


def run(main: Any = None, argv: Any = None) -> None:
    """Parse the flags, call `main` with the arguments that are left, and end the program with what it returns.

    A flag that is wrong or missing ends it with a line that says so, and exit code 1.
    """
    from toolkit.tensorflow.families.platform import flags

    given = list(sys.argv if argv is None else argv)
    try:
        rest = flags.FLAGS(given, known_only=True)
    except flags.FlagError as error:
        sys.exit(f"{given[0] if given else 'program'}: {error} (--help lists all flags)")
    if main is None:
        main = sys.modules["__main__"].main  # type: ignore[attr-defined]
    sys.exit(main(rest))


# -- tf.gfile ---------------------------------------------------------------------------------------------------


class GFile:
    """A file, opened when it is first used."""

    def __init__(self, name: Any, mode: str = "r"):
        self._name, self._mode = name, mode
        self._file: Any = None

    @property
    def name(self) -> Any:
        return self._name

    @property
    def mode(self) -> str:
        return self._mode

    def _opened(self) -> Any:
        if self._file is None:
            text = "b" not in self._mode
            try:
                self._file = open(  # noqa: SIM115 (it stays open)
                    self._name, self._mode, encoding="utf-8" if text else None, newline="" if text else None
                )
            except OSError as found:
                raise _status(found) from None
        return self._file

    def read(self, n: int = -1) -> Any:
        return self._opened().read(n)

    def write(self, file_content: Any) -> None:
        if "b" not in self._mode and isinstance(file_content, bytes):
            file_content = file_content.decode()
        self._opened().write(file_content)

    def readline(self) -> Any:
        return self._opened().readline()

    def readlines(self) -> list[Any]:
        return self._opened().readlines()

    def seek(self, offset: int | None = None, whence: int = 0, position: Any = None) -> None:
        self._opened().seek(position if offset is None else offset, whence)

    def tell(self) -> int:
        return self._opened().tell()

    def seekable(self) -> bool:
        return True

    def size(self) -> int:
        return os.stat(self._name).st_size

    def flush(self) -> None:
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> GFile:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._opened())

    def __next__(self) -> Any:
        return next(self._opened())

    def next(self) -> Any:
        return next(self._opened())


class FastGFile(GFile):
    """Deprecated; the same."""

    def __init__(self, name: Any, mode: str = "r"):
        super().__init__(name, mode)


def _status(found: OSError) -> Exception:
    return ours.os_status(found)(f"{found.filename}; {found.strerror}")


def Exists(filename: Any) -> bool:  # noqa: N802
    return os.path.exists(filename)


def IsDirectory(dirname: Any) -> bool:  # noqa: N802
    return os.path.isdir(dirname)


def ListDirectory(dirname: Any) -> list[str]:  # noqa: N802
    try:
        return os.listdir(dirname)
    except OSError as found:
        raise _status(found) from None


def Glob(filename: Any) -> list[str]:  # noqa: N802
    patterns = [filename] if isinstance(filename, str | os.PathLike) else filename
    return [path for pattern in patterns for path in sorted(glob.glob(os.fspath(pattern)))]


def MakeDirs(dirname: Any) -> None:  # noqa: N802
    try:
        os.makedirs(dirname, exist_ok=True)
    except OSError as found:
        raise _status(found) from None


def MkDir(dirname: Any) -> None:  # noqa: N802
    try:
        os.mkdir(dirname)
    except OSError as found:
        raise _status(found) from None


def Remove(filename: Any) -> None:  # noqa: N802
    try:
        os.remove(filename)
    except OSError as found:
        raise _status(found) from None


def DeleteRecursively(dirname: Any) -> None:  # noqa: N802
    try:
        shutil.rmtree(dirname) if os.path.isdir(dirname) else os.remove(dirname)
    except OSError as found:
        raise _status(found) from None


def Rename(oldname: Any, newname: Any, overwrite: bool = False) -> None:  # noqa: N802
    _may_be(newname, overwrite)
    try:
        os.replace(oldname, newname)
    except OSError as found:
        raise _status(found) from None


def Copy(oldpath: Any, newpath: Any, overwrite: bool = False) -> None:  # noqa: N802
    _may_be(newpath, overwrite)
    try:
        shutil.copyfile(oldpath, newpath)
    except OSError as found:
        raise _status(found) from None


def _may_be(path: Any, overwrite: bool) -> None:
    if not overwrite and os.path.exists(path):
        raise ours.AlreadyExistsError(f"{path} exists; pass overwrite=True")


def Stat(filename: Any) -> os.stat_result:  # noqa: N802
    try:
        return os.stat(filename)
    except OSError as found:
        raise _status(found) from None


def Walk(top: Any, in_order: bool = True) -> Generator[tuple[str, list[str], list[str]]]:  # noqa: N802
    yield from os.walk(top, topdown=in_order)


def exists(path: Any) -> bool:
    return os.path.exists(path)


def isdir(path: Any) -> bool:
    return os.path.isdir(path)


def listdir(path: Any) -> list[str]:
    return ListDirectory(path)


def gfile_glob(pattern: Any) -> list[str]:
    return Glob(pattern)


def makedirs(path: Any) -> None:
    MakeDirs(path)


def mkdir(path: Any) -> None:
    MkDir(path)


def remove(path: Any) -> None:
    Remove(path)


def rmtree(path: Any) -> None:
    DeleteRecursively(path)


def rename(src: Any, dst: Any, overwrite: bool = False) -> None:
    Rename(src, dst, overwrite)


def copy(src: Any, dst: Any, overwrite: bool = False) -> None:
    Copy(src, dst, overwrite)


def stat(path: Any) -> os.stat_result:
    return Stat(path)


def join(path: Any, *paths: Any) -> str:
    return os.path.join(path, *paths)


def walk(top: Any, topdown: bool = True, onerror: Any = None) -> Generator[tuple[str, list[str], list[str]]]:
    yield from os.walk(top, topdown=topdown, onerror=onerror)


# -- tf.test ----------------------------------------------------------------------------------------------------


def get_temp_dir() -> str:
    import tempfile

    return tempfile.mkdtemp()


def test_main(argv: Any = None) -> None:
    """Run the program's tests, or with --benchmarks=PATTERN its benchmarks."""
    arguments = list(sys.argv if argv is None else argv)
    asked = [each for each in arguments if re.match("--?benchmarks=", each)]
    if not asked:
        unittest.main(argv=argv)
        return
    from toolkit.tensorflow.families.testing import benchmarks

    benchmarks.run_benchmarks(asked[0].partition("=")[2])
    sys.exit()


def is_built_with_cuda() -> bool:
    """Whether CUDA is there for sessions: a GPU, its driver, and what calls it."""
    from toolkit.kernels import device_types

    return device_types.there("GPU") > 0


def is_gpu_available(cuda_only: bool = False, min_cuda_compute_capability: Any = None) -> bool:
    """Whether sessions have a GPU, of this compute capability at least, as (9, 0)."""
    from toolkit.kernels import device_types

    if not device_types.there("GPU"):
        return False
    if min_cuda_compute_capability is None:
        return True
    from toolkit.kernels.cuda.found import find

    least = tuple(min_cuda_compute_capability)
    return any(tuple(map(int, gpu.capability.split("."))) >= least for gpu in find().gpus)


def gpu_device_name() -> str:
    """The name of the first GPU, "" where there is none."""
    from toolkit.kernels import device_types

    return "/device:GPU:0" if device_types.there("GPU") else ""


def test_src_dir_path(relative_path: str) -> str:
    return os.path.join(os.environ.get("TEST_SRCDIR", "."), relative_path)


def matching(pattern: str, names: list[str]) -> list[str]:
    return fnmatch.filter(names, pattern)


# -- what TensorFlow 2's users switch off -------------------------------------------------------------------------


def disable_eager_execution() -> None:
    """There is none."""


def disable_v2_behavior() -> None:
    """There is none."""


def disable_v2_tensorshape() -> None:
    """There is none."""


def disable_tensor_equality() -> None:
    """Tensors compare by identity."""


def disable_control_flow_v2() -> None:
    """Control flow is TensorFlow 1's."""
    from toolkit.client.flow import control_flow

    control_flow.use_functions(False)


def control_flow_v2_enabled() -> bool:
    from toolkit.client.flow import control_flow

    return control_flow.uses_functions()


def executing_eagerly() -> bool:
    return False


def executing_eagerly_outside_functions() -> bool:
    return False
