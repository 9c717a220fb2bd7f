"""Ops that reach out of the model, function bodies included: running a model runs them with your rights."""

from __future__ import annotations

from collections.abc import Iterator

from toolkit.graph.node import Node
from toolkit.passes.validate.finding import Severity
from toolkit.passes.validate.registry import Problem, Rule, family
from toolkit.passes.validate.subject import Subject

_READS = frozenset({
    "ReadFile", "MatchingFiles", "MatchingFilesDataset", "ExperimentalMatchingFilesDataset", "WholeFileReader",
    "WholeFileReaderV2", "TextLineReader", "TextLineReaderV2", "FixedLengthRecordReader", "FixedLengthRecordReaderV2",
    "TFRecordReader", "TFRecordReaderV2", "LMDBReader", "LMDBDataset", "ExperimentalLMDBDataset", "TextLineDataset",
    "TFRecordDataset", "TFRecordDatasetV2", "FixedLengthRecordDataset", "FixedLengthRecordDatasetV2", "CSVDataset",
    "CSVDatasetV2", "ExperimentalCSVDataset", "LoadDataset", "LoadDatasetV2", "InitializeTableFromTextFile",
    "InitializeTableFromTextFileV2", "ImmutableConst", "SqlDataset", "ExperimentalSqlDataset",
    "ListSnapshotChunksDataset",
    "SnapshotChunkDataset", "SnapshotDatasetReader", "SnapshotNestedDatasetReader",
    "FixedUnigramCandidateSampler", "GenerateVocabRemapping", "RecordInput", "Skipgram",
})  # fmt: skip
_WRITES = frozenset({
    "WriteFile", "SaveDataset", "SaveDatasetV2", "DistributedSave", "SnapshotDataset", "SnapshotDatasetV2",
    "DatasetToTFRecord", "ExperimentalDatasetToTFRecord", "CreateSummaryFileWriter", "CreateSummaryDbWriter",
    "WriteSummary", "WriteScalarSummary", "WriteRawProtoSummary", "WriteGraphSummary", "WriteImageSummary",
    "WriteHistogramSummary", "WriteAudioSummary", "ImportEvent", "DumpTensor", "CacheDataset", "CacheDatasetV2",
    "CalibrationStatisticsSaver",
})  # fmt: skip
_CHECKPOINTS = frozenset({
    "Save", "SaveV2", "SaveSlices", "Restore", "RestoreV2", "RestoreSlice", "MergeV2Checkpoints",
    "LoadAndRemapMatrix", "DTensorRestoreV2",
})  # fmt: skip
_PYTHON = frozenset({"PyFunc", "PyFuncStateless", "EagerPyFunc"})
_NETWORK = frozenset({
    "RpcCall", "RpcClient", "RpcServer", "RpcServerStart", "RpcServerRegister", "RpcGetValue", "RpcCheckStatus",
    "DataServiceDataset", "DataServiceDatasetV2", "DataServiceDatasetV3", "DataServiceDatasetV4",
    "RegisterDataset", "RegisterDatasetV2", "FileSystemSetConfiguration",
})  # fmt: skip
_NATIVE = frozenset({
    "XlaCustomCall", "XlaCustomCallV2", "XlaCallModule", "TPUExecute", "TPUExecuteAndUpdateVariables",
    "DatasetFromGraph", "RemoteFusedGraphExecute",
})  # fmt: skip
_TABLE: tuple[tuple[frozenset[str], str, str], ...] = (
    (_READS, "file-read", "reads files"),
    (_WRITES, "file-write", "writes files"),
    (_PYTHON, "python", "calls Python code of the process that runs it"),
    (_NETWORK, "network", "opens network connections or changes how files are reached"),
    (_NATIVE, "native-code", "runs code that is not in the graph"),
    (_CHECKPOINTS, "checkpoint-io", "reads or writes checkpoint files"),
)
_KIND = {op: (rule, what) for ops, rule, what in _TABLE for op in ops}
_URLS = (b"grpc://", b"http://", b"https://", b"s3://", b"gs://", b"hdfs://")


@family(
    "security",
    Rule("file-read", Severity.WARNING, "an op that reads files", "run the model in a sandbox, or remove the op"),
    Rule("file-write", Severity.WARNING, "an op that writes files", "run the model in a sandbox, or remove the op"),
    Rule("python", Severity.WARNING, "an op that calls Python code", "replace it with ops"),
    Rule("network", Severity.WARNING, "an op that opens network connections", "run it offline, or remove the op"),
    Rule("native-code", Severity.WARNING, "an op that runs code outside the graph", "find out what it calls"),
    Rule("checkpoint-io", Severity.NOTE, "an op that reads or writes checkpoint files", "nothing, for a saver's ops"),
    Rule("output-file", Severity.WARNING, "an op that prints into a file", "let it print to stderr"),
    Rule("debug-url", Severity.WARNING, "a debugging op that sends tensors away", "remove the debugging ops"),
)  # fmt: skip
def security(subject: Subject) -> Iterator[Problem]:
    yield from _unbuilt(subject)
    for body, node in subject.nodes():
        kind = _KIND.get(node.op)
        if kind is not None:
            if node.op.startswith("FixedUnigram") and not node.attr("vocab_file", b""):
                continue
            if kind[0] == "checkpoint-io" and subject.meta.saver is not None:
                continue  # the saver's own
            if node.op.startswith("Cache") and _is_empty_constant(node):
                continue  # it caches in memory
            yield Problem(f"security/{kind[0]}", f"{node.op} {kind[1]}", node.name, body.function)
        elif node.op == "PrintV2":
            stream = node.attr("output_stream", b"")
            if isinstance(stream, bytes) and stream.startswith(b"file://"):
                yield Problem(
                    "security/output-file",
                    f"it prints into {stream.decode(errors='replace')}",
                    node.name,
                    body.function,
                )
        elif node.op.startswith("Debug") and "debug_urls" in node.attrs:
            for url in node.attr("debug_urls", []):
                if isinstance(url, bytes) and url.startswith((*_URLS, b"file://")):
                    message = f"it sends its input to {url.decode(errors='replace')}"
                    yield Problem("security/debug-url", message, node.name, body.function)


def _unbuilt(subject: Subject) -> Iterator[Problem]:
    """Ops in functions whose bodies could not be built, because they are broken or nothing says their types."""
    library = subject.graph.library
    built = {body.function for body in subject.bodies}
    for name in library:
        for node in library.function(name).node_def if name not in built else ():
            if node.op in _KIND:
                rule, what = _KIND[node.op]
                yield Problem(f"security/{rule}", f"{node.op} {what}", node.name, name)


def _is_empty_constant(node: Node) -> bool:
    source = node.inputs[1].node if len(node.inputs) > 1 else None
    if source is None or source.op != "Const":
        return False
    return not any(source.attr("value").string_val)
