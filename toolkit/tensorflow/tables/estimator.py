"""tf.estimator, and tf.contrib.tpu's form of it."""

HOMES: dict[str, str] = {
    "toolkit.tensorflow.estimators.extending": """
        estimator.add_metrics contrib.estimator.add_metrics contrib.estimator.forward_features
        contrib.estimator.clip_gradients_by_norm contrib.estimator.call_logit_fn
        contrib.estimator.export_saved_model_for_mode contrib.estimator.export_all_saved_models
        contrib.estimator.build_supervised_input_receiver_fn_from_input_fn estimator.experimental.call_logit_fn
    """,
    "toolkit.tensorflow.estimators.early_stopping": """
        estimator.experimental.make_early_stopping_hook estimator.experimental.make_stop_at_checkpoint_step_hook
        estimator.experimental.stop_if_higher_hook estimator.experimental.stop_if_lower_hook
        estimator.experimental.stop_if_no_decrease_hook estimator.experimental.stop_if_no_increase_hook
    """,
    "toolkit.tensorflow.estimators.in_memory": "estimator.experimental.InMemoryEvaluatorHook",
    "toolkit.tensorflow.estimators.example_specs": """
        estimator.classifier_parse_example_spec estimator.regressor_parse_example_spec
    """,
    "toolkit.tensorflow.estimators.multi_head": "estimator.MultiHead",
    "toolkit.tensorflow.estimators.contrib_heads": """
        contrib.estimator.binary_classification_head contrib.estimator.logistic_regression_head
        contrib.estimator.multi_class_head contrib.estimator.multi_head contrib.estimator.multi_label_head
        contrib.estimator.poisson_regression_head contrib.estimator.regression_head
    """,
    "toolkit.tensorflow.estimators.tpu": """
        contrib.tpu.CrossShardOptimizer contrib.tpu.InputPipelineConfig contrib.tpu.RunConfig=TPURunConfig
        contrib.tpu.TPUConfig contrib.tpu.TPUEstimator contrib.tpu.TPUEstimatorSpec
    """,
    "toolkit.tensorflow.estimators.clustering": """
        contrib.factorization.KMeansClustering estimator.experimental.KMeans=ExperimentalKMeans
    """,
    "toolkit.client.clustering.kmeans": """
        contrib.factorization.KMeans contrib.factorization.COSINE_DISTANCE contrib.factorization.RANDOM_INIT
        contrib.factorization.KMEANS_PLUS_PLUS_INIT contrib.factorization.SQUARED_EUCLIDEAN_DISTANCE
    """,
    "toolkit.tensorflow.estimators.run_config": "estimator.RunConfig estimator.ModeKeys",
    "toolkit.tensorflow.estimators.spec": "estimator.EstimatorSpec",
    "toolkit.tensorflow.estimators.warm_starts": "estimator.WarmStartSettings",
    "toolkit.tensorflow.estimators.estimator": "estimator.Estimator",
    "toolkit.tensorflow.estimators.training": """
        estimator.TrainSpec estimator.EvalSpec estimator.train_and_evaluate
    """,
    "toolkit.tensorflow.estimators.exporters": """
        estimator.Exporter estimator.FinalExporter estimator.LatestExporter estimator.BestExporter
    """,
    "toolkit.tensorflow.estimators.heads": """
        estimator.Head estimator.BinaryClassHead estimator.MultiClassHead estimator.MultiLabelHead
        estimator.RegressionHead estimator.PoissonRegressionHead estimator.LogisticRegressionHead
    """,
    "toolkit.tensorflow.estimators.canned": """
        estimator.LinearEstimator estimator.LinearClassifier estimator.LinearRegressor estimator.DNNEstimator
        estimator.DNNClassifier estimator.DNNRegressor estimator.DNNLinearCombinedEstimator
        estimator.DNNLinearCombinedClassifier estimator.DNNLinearCombinedRegressor estimator.BaselineEstimator
        estimator.BaselineClassifier estimator.BaselineRegressor estimator.experimental.dnn_logit_fn_builder
        estimator.experimental.linear_logit_fn_builder
    """,
    "toolkit.tensorflow.estimators.inputs": "estimator.inputs.numpy_input_fn estimator.inputs.pandas_input_fn",
    "toolkit.tensorflow.estimators.export_outputs": """
        estimator.export.ClassificationOutput estimator.export.ExportOutput estimator.export.PredictOutput
        estimator.export.RegressionOutput
    """,
    "toolkit.tensorflow.estimators.receivers": """
        estimator.export.ServingInputReceiver estimator.export.TensorServingInputReceiver
        estimator.export.build_parsing_serving_input_receiver_fn
        estimator.export.build_raw_serving_input_receiver_fn
        estimator.experimental.build_raw_supervised_input_receiver_fn
    """,
}
