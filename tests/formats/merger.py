"""TensorFlow's own reader of split messages, which its Python has no door to: called in its library."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

#: room for any of the messages that are made here
_MESSAGE = 4096
_NAMES = {"SavedModel": "10SavedModel", "GraphDef": "8GraphDef", "MetaGraphDef": "12MetaGraphDef"}


class _String(ctypes.Structure):
    """A std::string of GNU's C++ library."""

    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_size_t), ("inside", ctypes.c_char * 16)]


def _library() -> Any:
    import tensorflow as tf

    return ctypes.CDLL(str(Path(tf.sysconfig.get_lib(), "libtensorflow_framework.so.2")))


def merged_by_tensorflow(prefix: str, kind: str) -> bytes | None:
    """The message in PREFIX.cpb, serialized; None where Merger::Read returns an error."""
    library = _library()
    message = ctypes.create_string_buffer(_MESSAGE)
    getattr(library, f"_ZN10tensorflow{_NAMES[kind]}C1EPN6google8protobuf5ArenaE")(ctypes.byref(message), None)
    name = ctypes.create_string_buffer(prefix.encode())
    given = _String(ctypes.cast(name, ctypes.c_void_p).value, len(prefix))
    status = ctypes.c_uint64(0)
    read = (
        "_ZN10tensorflow5tools14proto_splitter6Merger4ReadENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
        "PN6google8protobuf7MessageE"
    )
    getattr(library, read)(ctypes.byref(status), ctypes.byref(given), ctypes.byref(message))
    if status.value != 1:  # absl::OkStatus() is the number 1
        return None
    out = _String()
    serialize = library["_ZNK6google8protobuf11MessageLite17SerializeAsStringB5cxx11Ev"]
    serialize(ctypes.byref(out), ctypes.byref(message))
    return ctypes.string_at(out.data, out.size)


def highway_of_tensorflow(data: bytes, key: tuple[int, ...]) -> int:
    """HighwayHash's reference code."""
    function = _library().HighwayHash64_Portable
    function.restype, function.argtypes = ctypes.c_uint64, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64]
    return function((ctypes.c_uint64 * 4)(*key), data, len(data))
