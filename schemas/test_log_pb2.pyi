from google.protobuf import wrappers_pb2 as _wrappers_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class EntryValue(_message.Message):
    __slots__ = ("double_value", "string_value")
    DOUBLE_VALUE_FIELD_NUMBER: _ClassVar[int]
    STRING_VALUE_FIELD_NUMBER: _ClassVar[int]
    double_value: float
    string_value: str
    def __init__(self, double_value: _Optional[float] = ..., string_value: _Optional[str] = ...) -> None: ...

class MetricEntry(_message.Message):
    __slots__ = ("name", "value", "min_value", "max_value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    MIN_VALUE_FIELD_NUMBER: _ClassVar[int]
    MAX_VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: float
    min_value: _wrappers_pb2.DoubleValue
    max_value: _wrappers_pb2.DoubleValue
    def __init__(self, name: _Optional[str] = ..., value: _Optional[float] = ..., min_value: _Optional[_Union[_wrappers_pb2.DoubleValue, _Mapping]] = ..., max_value: _Optional[_Union[_wrappers_pb2.DoubleValue, _Mapping]] = ...) -> None: ...

class BenchmarkEntry(_message.Message):
    __slots__ = ("name", "iters", "cpu_time", "wall_time", "throughput", "extras", "metrics")
    class ExtrasEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: EntryValue
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[EntryValue, _Mapping]] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    ITERS_FIELD_NUMBER: _ClassVar[int]
    CPU_TIME_FIELD_NUMBER: _ClassVar[int]
    WALL_TIME_FIELD_NUMBER: _ClassVar[int]
    THROUGHPUT_FIELD_NUMBER: _ClassVar[int]
    EXTRAS_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    name: str
    iters: int
    cpu_time: float
    wall_time: float
    throughput: float
    extras: _containers.MessageMap[str, EntryValue]
    metrics: _containers.RepeatedCompositeFieldContainer[MetricEntry]
    def __init__(self, name: _Optional[str] = ..., iters: _Optional[int] = ..., cpu_time: _Optional[float] = ..., wall_time: _Optional[float] = ..., throughput: _Optional[float] = ..., extras: _Optional[_Mapping[str, EntryValue]] = ..., metrics: _Optional[_Iterable[_Union[MetricEntry, _Mapping]]] = ...) -> None: ...

class BenchmarkEntries(_message.Message):
    __slots__ = ("entry",)
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    entry: _containers.RepeatedCompositeFieldContainer[BenchmarkEntry]
    def __init__(self, entry: _Optional[_Iterable[_Union[BenchmarkEntry, _Mapping]]] = ...) -> None: ...
