"""The table of ops that can reach outside of the process: `validate`, sessions and `graphmill help trust` read it.

An op without a row computes and nothing else. `toolkit.kernels.registry` refuses kernels of ops in the table that are
registered as pure, so nothing in it is ever folded, moved or left out while a step is compiled.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass


class Reach(enum.Enum):
    """A way to reach outside; the value is how `--allow` calls it."""

    READ = "read"
    LIST = "list"
    WRITE = "write"
    DELETE = "delete"
    NETWORK = "network"
    PROCESS = "process"
    PYTHON = "python"
    NATIVE = "native"
    OUTPUT = "output"
    EXIT = "exit"

    @property
    def on_paths(self) -> bool:
        """Whether it is allowed path by path."""
        return self in _ON_PATHS

    @property
    def switch(self) -> str:
        """What to write after `--allow`: listing goes with reading, deleting with writing."""
        return {Reach.LIST: "read", Reach.DELETE: "write"}.get(self, self.value)


_ON_PATHS = frozenset({Reach.READ, Reach.LIST, Reach.WRITE, Reach.DELETE})

#: what each class means, in the third person
MEANING: dict[Reach, str] = {
    Reach.READ: "reads files",
    Reach.LIST: "lists directories",
    Reach.WRITE: "writes files",
    Reach.DELETE: "deletes files",
    Reach.NETWORK: "uses the network",
    Reach.PROCESS: "starts or ends other processes",
    Reach.PYTHON: "calls Python code of the process",
    Reach.NATIVE: "runs machine code that is not in the graph",
    Reach.OUTPUT: "writes to standard output or standard error",
    Reach.EXIT: "ends the process or the step",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One way in which an op reaches outside.

    Attributes:
        reach: its class.
        input: which input holds the path, or the paths; None: no input does.
        attr: which attribute holds it, or them; "" when none does.
        applies: whether a path that is known counts: an empty one, or one of another kind, may reach nowhere.
        prefix: what stands there is not one file, but how the names of several begin: a checkpoint. Only these may be
            URLs: all other ops reach local files alone.
        through: it goes on with what another op of the table opened (a reader, a writer), which is what is judged.
        late: a path that is not known yet may be none at all, so nothing is refused before it is known.
    """

    reach: Reach
    input: int | None = None
    attr: str = ""
    applies: Callable[[str], bool] = bool
    prefix: bool = False
    through: bool = False
    late: bool = False


def _is_file_url(text: str) -> bool:
    return text.startswith("file://")


def _is_no_file_url(text: str) -> bool:
    return not text.startswith("file://")


def _is_descriptor_file(text: str) -> bool:
    return text not in ("", "local://") and not text.startswith("bytes://")


_TABLE: dict[str, tuple[Row, ...]] = {}


def _ops(names: str, *rows: Row) -> None:
    for name in names.split():
        if name in _TABLE:
            raise ValueError(f"{name} is in the table twice")
        _TABLE[name] = rows


# -- whole files, and lists of them
_ops("ReadFile", Row(Reach.READ, 0))
_ops("WriteFile", Row(Reach.WRITE, 0))
_ops("MatchingFiles MatchingFilesDataset ExperimentalMatchingFilesDataset", Row(Reach.LIST, 0))
_ops("ImmutableConst", Row(Reach.READ, attr="memory_region_name"))
_ops("DecodeProtoV2 EncodeProto", Row(Reach.READ, attr="descriptor_source", applies=_is_descriptor_file))
# -- readers: names come from a queue, so they are judged when they are opened
_ops(
    "WholeFileReader WholeFileReaderV2 TextLineReader TextLineReaderV2 FixedLengthRecordReader "
    "FixedLengthRecordReaderV2 TFRecordReader TFRecordReaderV2 LMDBReader",
    Row(Reach.READ),
)
_ops("ReaderRead ReaderReadV2 ReaderReadUpTo ReaderReadUpToV2", Row(Reach.READ, through=True))
_ops("RecordInput", Row(Reach.READ, attr="file_pattern"))
# -- datasets
_ops(
    "TextLineDataset TFRecordDataset TFRecordDatasetV2 FixedLengthRecordDataset FixedLengthRecordDatasetV2 CSVDataset "
    "CSVDatasetV2 ExperimentalCSVDataset LMDBDataset ExperimentalLMDBDataset LoadDataset "
    "ListSnapshotChunksDataset SnapshotChunkDataset",
    Row(Reach.READ, 0),
)
_ops("SqlDataset ExperimentalSqlDataset", Row(Reach.READ, 1))
_ops("SnapshotDatasetReader SnapshotNestedDatasetReader", Row(Reach.READ))
_ops(
    "CacheDataset CacheDatasetV2",
    Row(Reach.READ, 1, prefix=True, late=True), Row(Reach.WRITE, 1, prefix=True, late=True),
)  # fmt: skip
_ops(
    "SnapshotDataset SnapshotDatasetV2 SaveDataset SaveDatasetV2 DatasetToTFRecord ExperimentalDatasetToTFRecord",
    Row(Reach.WRITE, 1),
)
_ops("DistributedSave", Row(Reach.WRITE, 1), Row(Reach.NETWORK, 2))
_ops(
    "DataServiceDataset DataServiceDatasetV2 DataServiceDatasetV3 DataServiceDatasetV4 RegisterDataset "
    "RegisterDatasetV2",
    Row(Reach.NETWORK),
)
# -- checkpoints
_ops("RestoreV2 Restore RestoreSlice DTensorRestoreV2 LoadAndRemapMatrix", Row(Reach.READ, 0, prefix=True))
_ops("SaveV2 Save SaveSlices", Row(Reach.WRITE, 0, prefix=True))
_ops(
    "MergeV2Checkpoints",
    Row(Reach.READ, 0, prefix=True), Row(Reach.DELETE, 0, prefix=True), Row(Reach.WRITE, 1, prefix=True),
)  # fmt: skip
# -- vocabularies
_ops("InitializeTableFromTextFile InitializeTableFromTextFileV2", Row(Reach.READ, 1))
_ops("GenerateVocabRemapping", Row(Reach.READ, 0), Row(Reach.READ, 1))
_ops("FixedUnigramCandidateSampler", Row(Reach.READ, attr="vocab_file"))
_ops("Skipgram", Row(Reach.READ, attr="filename"))
# -- summaries, dumps and what is printed
_ops("CreateSummaryFileWriter CreateSummaryDbWriter", Row(Reach.WRITE, 1))
_ops(
    "WriteSummary WriteScalarSummary WriteRawProtoSummary WriteGraphSummary WriteImageSummary WriteHistogramSummary "
    "WriteAudioSummary ImportEvent FlushSummaryWriter CloseSummaryWriter StatsAggregatorSetSummaryWriter",
    Row(Reach.WRITE, through=True),
)
_ops("DumpTensor", Row(Reach.WRITE, attr="log_dir_path"))
_ops("CalibrationStatisticsSaver", Row(Reach.WRITE, attr="output_file_path"))
_ops("Print", Row(Reach.OUTPUT))
_ops(
    "PrintV2",
    Row(Reach.OUTPUT, attr="output_stream", applies=_is_no_file_url),
    Row(Reach.WRITE, attr="output_stream", applies=_is_file_url),
)
_ops(
    "DebugIdentity DebugIdentityV2 DebugIdentityV3 DebugNanCount DebugNumericSummary",
    Row(Reach.WRITE, attr="debug_urls", applies=_is_file_url),
    Row(Reach.NETWORK, attr="debug_urls", applies=_is_no_file_url),
)
# -- other machines and other code
_ops(
    "RpcCall RpcClient RpcServer RpcServerStart RpcServerRegister RpcGetValue RpcCheckStatus "
    "FileSystemSetConfiguration",
    Row(Reach.NETWORK),
)
_ops("PyFunc PyFuncStateless EagerPyFunc", Row(Reach.PYTHON))
_ops(
    "XlaCustomCall XlaCustomCallV2 XlaCallModule TPUExecute TPUExecuteAndUpdateVariables DatasetFromGraph",
    Row(Reach.NATIVE),
)
_ops("WorkerHeartbeat", Row(Reach.PROCESS))
_ops("Abort", Row(Reach.EXIT))


def rows(op: str) -> tuple[Row, ...]:
    """How an op reaches outside; nothing for one that only computes."""
    return _TABLE.get(op, ())


def has_effects(op: str) -> bool:
    """Whether an op is in the table, so that it must run when and only when its graph says so."""
    return op in _TABLE


def only_reads(op: str) -> bool:
    """Whether an op reads files and leaves everything as it was."""
    found = _TABLE.get(op, ())
    return bool(found) and all(row.reach in (Reach.READ, Reach.LIST) for row in found)


def table() -> Iterable[tuple[str, tuple[Row, ...]]]:
    """All rows by op, in the order of the classes' families."""
    return _TABLE.items()
