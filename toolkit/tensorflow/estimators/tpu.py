# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.contrib.tpu's estimator, for the many programs that use it and run without a TPU (use_tpu=False)."""

from __future__ import annotations

from typing import Any, NamedTuple

from toolkit.client.train.optimizer import Optimizer
from toolkit.tensorflow.estimators.estimator import Estimator
from toolkit.tensorflow.estimators.run_config import ModeKeys, RunConfig
from toolkit.tensorflow.estimators.spec import EstimatorSpec

#: what an export is written with: there is one way here
_ANY_VERSION = object()


class InputPipelineConfig:
    """Where the input of a TPU runs; nothing here depends on it."""

    PER_SHARD_V1 = 1
    PER_HOST_V1 = 2
    PER_HOST_V2 = 3
    BROADCAST = 4
    SLICED = 5


class _TPUConfig(NamedTuple):
    iterations_per_loop: Any
    num_shards: Any
    num_cores_per_replica: Any
    per_host_input_for_training: Any
    tpu_job_name: Any
    initial_infeed_sleep_secs: Any
    input_partition_dims: Any
    eval_training_input_configuration: Any
    experimental_host_call_every_n_steps: Any


class TPUConfig(_TPUConfig):
    """Settings of a TPU, which are kept and without effect."""

    def __new__(
        cls, iterations_per_loop: Any = 2, num_shards: Any = None, num_cores_per_replica: Any = None,
        per_host_input_for_training: Any = True, tpu_job_name: Any = None, initial_infeed_sleep_secs: Any = None,
        input_partition_dims: Any = None, eval_training_input_configuration: Any = InputPipelineConfig.PER_HOST_V1,
        experimental_host_call_every_n_steps: Any = 1,
    ) -> TPUConfig:  # fmt: skip
        return super().__new__(
            cls, iterations_per_loop, num_shards, num_cores_per_replica, per_host_input_for_training, tpu_job_name,
            initial_infeed_sleep_secs, input_partition_dims, eval_training_input_configuration,
            experimental_host_call_every_n_steps,
        )  # fmt: skip


class TPURunConfig(RunConfig):
    """The settings of a run, with those of a TPU beside them."""

    def __init__(
        self, tpu_config: Any = None, evaluation_master: Any = None, master: Any = None, cluster: Any = None,
        **kwargs: Any,
    ):  # fmt: skip
        super().__init__(**kwargs)
        self._tpu_config = tpu_config or TPUConfig()
        self._cluster_resolver = cluster

    @property
    def tpu_config(self) -> Any:
        return self._tpu_config

    @property
    def cluster(self) -> Any:
        return self._cluster_resolver


class _TPUEstimatorSpec(NamedTuple):
    mode: Any
    predictions: Any
    loss: Any
    train_op: Any
    eval_metrics: Any
    export_outputs: Any
    scaffold_fn: Any
    host_call: Any
    training_hooks: Any
    evaluation_hooks: Any
    prediction_hooks: Any


class TPUEstimatorSpec(_TPUEstimatorSpec):
    """What a model function returns: metrics as a function and the tensors it takes, the scaffold as a function."""

    def __new__(
        cls, mode: Any, predictions: Any = None, loss: Any = None, train_op: Any = None, eval_metrics: Any = None,
        export_outputs: Any = None, scaffold_fn: Any = None, host_call: Any = None, training_hooks: Any = None,
        evaluation_hooks: Any = None, prediction_hooks: Any = None,
    ) -> TPUEstimatorSpec:  # fmt: skip
        return super().__new__(
            cls, mode, predictions, loss, train_op, eval_metrics, export_outputs, scaffold_fn, host_call,
            training_hooks, evaluation_hooks, prediction_hooks,
        )  # fmt: skip

    def as_estimator_spec(self) -> EstimatorSpec:
        """The same for a run without a TPU; the host call, which feeds a TPU's host, is left out.

        Raises:
            ValueError: eval_metrics is no pair of a function and its tensors.
        """
        return EstimatorSpec(
            mode=self.mode, predictions=self.predictions, loss=self.loss, train_op=self.train_op,
            eval_metric_ops=_metrics(self.eval_metrics), export_outputs=self.export_outputs,
            scaffold=self.scaffold_fn() if self.scaffold_fn else None, training_hooks=self.training_hooks,
            evaluation_hooks=self.evaluation_hooks, prediction_hooks=self.prediction_hooks,
        )  # fmt: skip


def _metrics(given: Any) -> Any:
    if given is None:
        return None
    if not isinstance(given, tuple | list) or len(given) != 2 or not callable(given[0]):
        raise ValueError(f"eval_metrics must be a function and the tensors that it takes; got {given!r}")
    function, tensors = given
    return function(**tensors) if isinstance(tensors, dict) else function(*tensors)


class TPUEstimator(Estimator):
    """An Estimator whose functions find the size of a batch in params["batch_size"].

    Raises:
        ValueError: a TPU is wanted (`use_tpu`), or params have a "batch_size" of their own.
    """

    def __init__(
        self, model_fn: Any = None, model_dir: Any = None, config: Any = None, params: Any = None,
        use_tpu: bool = True, train_batch_size: Any = None, eval_batch_size: Any = None,
        predict_batch_size: Any = None, batch_axis: Any = None, eval_on_tpu: bool = True, export_to_tpu: bool = True,
        export_to_cpu: bool = True, warm_start_from: Any = None, embedding_config_spec: Any = None,
        export_saved_model_api_version: Any = _ANY_VERSION,
    ):  # fmt: skip
        if use_tpu:
            raise ValueError("no TPU is driven here; give TPUEstimator use_tpu=False")
        if params is not None and "batch_size" in params:
            raise ValueError('params["batch_size"] is set by TPUEstimator; give train_batch_size and its kin')
        self._batch_sizes = {
            ModeKeys.TRAIN: train_batch_size, ModeKeys.EVAL: eval_batch_size, ModeKeys.PREDICT: predict_batch_size,
        }  # fmt: skip
        super().__init__(model_fn, model_dir, config or TPURunConfig(), params, warm_start_from)

    def _params_of(self, mode: str) -> Any:
        """The params with the size of a batch, where it is given."""
        params, size = self.params, self._batch_sizes[mode]
        if size is None:
            return params
        if hasattr(params, "add_hparam"):
            params.add_hparam("batch_size", size)
        else:
            params["batch_size"] = size
        return params

    def _spec_of(self, found: Any) -> Any:
        """What a model function returned, as an EstimatorSpec."""
        return found.as_estimator_spec() if isinstance(found, TPUEstimatorSpec) else found


class CrossShardOptimizer(Optimizer):
    """An optimizer whose gradients are those of all shards; without a TPU there is one.

    Raises:
        ValueError: another reduction than a weighted sum or mean.
    """

    def __init__(
        self,
        opt: Any,
        reduction: str = "weighted_mean",
        name: str = "CrossShardOptimizer",
        group_assignment: Any = None,
    ):
        if reduction not in ("weighted_sum", "weighted_mean"):
            raise ValueError(f"reduction: expected weighted_sum or weighted_mean; got {reduction!r}")
        super().__init__(False, name)
        self._optimizer = opt

    def compute_gradients(self, loss: Any, var_list: Any = None, *options: Any, **kwargs: Any) -> Any:
        return self._optimizer.compute_gradients(loss, var_list, *options, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Any = None) -> Any:
        return self._optimizer.apply_gradients(grads_and_vars, global_step, name)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        return self._optimizer.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> Any:
        return self._optimizer.get_slot_names(*args, **kwargs)

    def variables(self) -> Any:
        return self._optimizer.variables()
