"""tf.contrib.learn: estimators from before tf.estimator, experiments, monitors."""

HOMES: dict[str, str] = {
    "toolkit.tensorflow.learn.keys": """
        contrib.learn.PredictionKey contrib.learn.ProblemType contrib.learn.TaskType
        contrib.learn.python.learn.estimators.metric_key.MetricKey
        contrib.learn.python.learn.estimators.run_config.Environment
    """,
    "toolkit.tensorflow.learn.run_config": """
        contrib.learn.RunConfig=LearnRunConfig
        contrib.learn.python.learn.estimators.run_config._DEFAULT_UID_WHITE_LIST=UNCHECKED_SETTINGS
    """,
    "toolkit.tensorflow.learn.model_fn_ops": "contrib.learn.ModelFnOps",
    "toolkit.tensorflow.learn.tensor_signature": """
        contrib.learn.estimators.tensor_signature.TensorSignature
        contrib.learn.estimators.tensor_signature.tensors_compatible
        contrib.learn.estimators.tensor_signature.create_signatures
        contrib.learn.estimators.tensor_signature.create_placeholders_from_signatures
        contrib.learn.estimators.tensor_signature.create_example_parser_from_signatures
    """,
    "toolkit.tensorflow.learn.metric_spec": "contrib.learn.MetricSpec",
    "toolkit.tensorflow.learn.base_estimator": """
        contrib.learn.BaseEstimator contrib.learn.Evaluable contrib.learn.Trainable
    """,
    "toolkit.tensorflow.learn.estimator": """
        contrib.learn.Estimator=LearnEstimator contrib.learn.infer_real_valued_columns_from_input
        contrib.learn.infer_real_valued_columns_from_input_fn
    """,
    "toolkit.tensorflow.learn.heads": "contrib.learn.Head=LearnHead",
    "toolkit.tensorflow.learn.head_makers": """
        contrib.learn.multi_class_head contrib.learn.multi_label_head contrib.learn.binary_svm_head
        contrib.learn.regression_head contrib.learn.poisson_regression_head contrib.learn.multi_head
        contrib.learn.no_op_train_fn contrib.learn.python.learn.estimators.head.loss_only_head
    """,
    "toolkit.tensorflow.learn.canned": """
        contrib.learn.DNNClassifier=LearnDNNClassifier contrib.learn.DNNRegressor=LearnDNNRegressor
        contrib.learn.DNNEstimator=LearnDNNEstimator contrib.learn.LinearClassifier=LearnLinearClassifier
        contrib.learn.LinearRegressor=LearnLinearRegressor contrib.learn.LinearEstimator=LearnLinearEstimator
    """,
    "toolkit.tensorflow.learn.canned_combined": """
        contrib.learn.DNNLinearCombinedClassifier=LearnDNNLinearCombinedClassifier
        contrib.learn.DNNLinearCombinedRegressor=LearnDNNLinearCombinedRegressor
        contrib.learn.DNNLinearCombinedEstimator=LearnDNNLinearCombinedEstimator
    """,
    "toolkit.tensorflow.learn.logistic": "contrib.learn.LogisticRegressor",
    "toolkit.tensorflow.learn.scikit": """
        contrib.learn.NotFittedError contrib.learn.python.learn.estimators._sklearn.accuracy_score
        contrib.learn.python.learn.estimators._sklearn.mean_squared_error
        contrib.learn.python.learn.estimators._sklearn.train_test_split
    """,
    "toolkit.tensorflow.learn.sklearn_compat": "contrib.learn.SKCompat",
    "toolkit.tensorflow.learn.feeding": """
        contrib.learn.extract_pandas_data contrib.learn.extract_pandas_labels contrib.learn.extract_pandas_matrix
        contrib.learn.extract_dask_data contrib.learn.extract_dask_labels
    """,
    "toolkit.tensorflow.learn.exporting": """
        contrib.learn.InputFnOps contrib.learn.build_parsing_serving_input_fn contrib.learn.ExportStrategy
        contrib.learn.make_export_strategy contrib.learn.utils.input_fn_utils.build_default_serving_input_fn
        contrib.learn.utils.saved_model_export_utils.make_parsing_export_strategy
        contrib.learn.utils.saved_model_export_utils.make_best_model_export_strategy
        contrib.learn.utils.saved_model_export_utils.garbage_collect_exports
        contrib.learn.python.learn.estimators.estimator.GraphRewriteSpec
    """,
    "toolkit.tensorflow.learn.monitors": """
        contrib.learn.monitors.BaseMonitor contrib.learn.monitors.EveryN
        contrib.learn.monitors.RunHookAdapterForMonitors contrib.learn.monitors.replace_monitors_with_hooks
    """,
    "toolkit.tensorflow.learn.monitor_kinds": """
        contrib.learn.monitors.StopAtStep contrib.learn.monitors.PrintTensor contrib.learn.monitors.LoggingTrainable
        contrib.learn.monitors.SummarySaver contrib.learn.monitors.ValidationMonitor
        contrib.learn.monitors.CaptureVariable contrib.learn.monitors.CheckpointSaver
        contrib.learn.monitors.StepCounter contrib.learn.monitors.NanLoss
        contrib.learn.monitors.get_default_monitors contrib.learn.NanLossDuringTrainingError
    """,
    "toolkit.tensorflow.learn.datasets": """
        contrib.learn.datasets.base.Dataset=LabelledExamples contrib.learn.datasets.base.load_csv_with_header
        contrib.learn.datasets.base.load_csv_without_header contrib.learn.datasets.base.maybe_download
        contrib.learn.datasets.base.shrink_csv contrib.learn.datasets.base.retry
        contrib.learn.datasets.base.urlretrieve_with_retry contrib.learn.datasets.load_iris
        contrib.learn.datasets.load_boston
    """,
    "toolkit.tensorflow.learn.dataset_names": """
        contrib.learn.datasets.DATASETS contrib.learn.datasets.SYNTHETIC contrib.learn.datasets.load_dataset
        contrib.learn.datasets.make_dataset contrib.learn.datasets.mnist.load_mnist
        contrib.learn.python.learn.datasets.synthetic.circles contrib.learn.python.learn.datasets.synthetic.spirals
    """,
    "toolkit.tensorflow.families.data.mnist": """
        contrib.learn.datasets.base.Datasets contrib.learn.datasets.mnist.read_data_sets
        contrib.learn.datasets.mnist.DataSet contrib.learn.datasets.mnist.extract_images
        contrib.learn.datasets.mnist.extract_labels contrib.learn.datasets.mnist.dense_to_one_hot
    """,
    "toolkit.tensorflow.learn.experiment": "contrib.learn.Experiment",
    "toolkit.tensorflow.learn.learn_runner": "contrib.learn.learn_runner.run contrib.learn.learn_runner.tune",
}
