from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ChunkMetadata(_message.Message):
    __slots__ = ("version", "chunks", "message")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CHUNKS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    version: VersionDef
    chunks: _containers.RepeatedCompositeFieldContainer[ChunkInfo]
    message: ChunkedMessage
    def __init__(self, version: _Optional[_Union[VersionDef, _Mapping]] = ..., chunks: _Optional[_Iterable[_Union[ChunkInfo, _Mapping]]] = ..., message: _Optional[_Union[ChunkedMessage, _Mapping]] = ...) -> None: ...

class VersionDef(_message.Message):
    __slots__ = ("splitter_version", "join_version", "bad_consumers")
    SPLITTER_VERSION_FIELD_NUMBER: _ClassVar[int]
    JOIN_VERSION_FIELD_NUMBER: _ClassVar[int]
    BAD_CONSUMERS_FIELD_NUMBER: _ClassVar[int]
    splitter_version: int
    join_version: int
    bad_consumers: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, splitter_version: _Optional[int] = ..., join_version: _Optional[int] = ..., bad_consumers: _Optional[_Iterable[int]] = ...) -> None: ...

class ChunkInfo(_message.Message):
    __slots__ = ("type", "size", "offset")
    class Type(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        UNSET: _ClassVar[ChunkInfo.Type]
        MESSAGE: _ClassVar[ChunkInfo.Type]
        BYTES: _ClassVar[ChunkInfo.Type]
    UNSET: ChunkInfo.Type
    MESSAGE: ChunkInfo.Type
    BYTES: ChunkInfo.Type
    TYPE_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    type: ChunkInfo.Type
    size: int
    offset: int
    def __init__(self, type: _Optional[_Union[ChunkInfo.Type, str]] = ..., size: _Optional[int] = ..., offset: _Optional[int] = ...) -> None: ...

class ChunkedMessage(_message.Message):
    __slots__ = ("chunk_index", "chunked_fields")
    CHUNK_INDEX_FIELD_NUMBER: _ClassVar[int]
    CHUNKED_FIELDS_FIELD_NUMBER: _ClassVar[int]
    chunk_index: int
    chunked_fields: _containers.RepeatedCompositeFieldContainer[ChunkedField]
    def __init__(self, chunk_index: _Optional[int] = ..., chunked_fields: _Optional[_Iterable[_Union[ChunkedField, _Mapping]]] = ...) -> None: ...

class ChunkedField(_message.Message):
    __slots__ = ("field_tag", "message")
    FIELD_TAG_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    field_tag: _containers.RepeatedCompositeFieldContainer[FieldIndex]
    message: ChunkedMessage
    def __init__(self, field_tag: _Optional[_Iterable[_Union[FieldIndex, _Mapping]]] = ..., message: _Optional[_Union[ChunkedMessage, _Mapping]] = ...) -> None: ...

class FieldIndex(_message.Message):
    __slots__ = ("field", "map_key", "index")
    class MapKey(_message.Message):
        __slots__ = ("s", "boolean", "ui32", "ui64", "i32", "i64")
        S_FIELD_NUMBER: _ClassVar[int]
        BOOLEAN_FIELD_NUMBER: _ClassVar[int]
        UI32_FIELD_NUMBER: _ClassVar[int]
        UI64_FIELD_NUMBER: _ClassVar[int]
        I32_FIELD_NUMBER: _ClassVar[int]
        I64_FIELD_NUMBER: _ClassVar[int]
        s: str
        boolean: bool
        ui32: int
        ui64: int
        i32: int
        i64: int
        def __init__(self, s: _Optional[str] = ..., boolean: bool = ..., ui32: _Optional[int] = ..., ui64: _Optional[int] = ..., i32: _Optional[int] = ..., i64: _Optional[int] = ...) -> None: ...
    FIELD_FIELD_NUMBER: _ClassVar[int]
    MAP_KEY_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    field: int
    map_key: FieldIndex.MapKey
    index: int
    def __init__(self, field: _Optional[int] = ..., map_key: _Optional[_Union[FieldIndex.MapKey, _Mapping]] = ..., index: _Optional[int] = ...) -> None: ...
