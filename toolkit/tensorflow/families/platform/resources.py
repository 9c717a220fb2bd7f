# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.resource_loader, tf.sysconfig, tf.errors' codes: files beside the program, and what this library is built of."""

from __future__ import annotations

import os
import sys
from typing import Any

from toolkit import errors
from toolkit.errors import UnimplementedError


def _folder_of_caller() -> str:
    frame = sys._getframe(2)
    return os.path.dirname(os.path.abspath(frame.f_code.co_filename))


def load_resource(path: str) -> bytes:
    """The content of a file beside the module that calls."""
    full = os.path.join(_folder_of_caller(), path)
    try:
        with open(full, "rb") as file:
            return file.read()
    except OSError as error:
        raise OSError(f"{full}: cannot be read: {error.strerror}") from None


def get_data_files_path() -> str:
    """The folder of the module that calls."""
    return _folder_of_caller()


def get_root_dir_with_all_resources() -> str:
    return _folder_of_caller()


def get_path_to_datafile(path: str) -> str:
    """The path of a file beside the module that calls."""
    return os.path.join(_folder_of_caller(), path)


def readahead_file_path(path: str, readahead: str = "128M") -> str:
    return path


def get_build_info() -> dict[str, Any]:
    """How the library is built: for CUDA where a GPU is there."""
    from toolkit.kernels import device_types

    return {"is_cuda_build": device_types.there("GPU") > 0, "is_rocm_build": False, "is_tensorrt_build": False}


def _no_headers() -> Any:
    raise UnimplementedError(
        "graphmill has no C++ headers and libraries to compile against; write kernels in Python and load them "
        "with --plugin"
    )


def get_include() -> str:
    return _no_headers()


def get_lib() -> str:
    return _no_headers()


def get_compile_flags() -> list[str]:
    return _no_headers()


def get_link_flags() -> list[str]:
    return _no_headers()


class UnauthenticatedError(errors.OpError):
    """Who asks has not said who they are."""

    code = 16


def exception_type_from_error_code(error_code: int) -> type[Exception]:
    """The exception of a status code."""
    if error_code == UnauthenticatedError.code:
        return UnauthenticatedError
    return errors.BY_CODE[error_code]


def error_code_from_exception_type(cls: Any) -> int:
    """The status code of an exception; that of an unknown error for any other class."""
    found = next((code for code, kind in errors.BY_CODE.items() if kind is cls), None)
    if found is None:
        found = UnauthenticatedError.code if cls is UnauthenticatedError else 2
    return found
