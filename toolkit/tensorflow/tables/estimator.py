"""tf.estimator, and tf.contrib.tpu's form of it."""

HOMES: dict[str, str] = {
    "toolkit.tensorflow.estimators.tpu": """
        contrib.tpu.CrossShardOptimizer contrib.tpu.InputPipelineConfig contrib.tpu.RunConfig=TPURunConfig
        contrib.tpu.TPUConfig contrib.tpu.TPUEstimator contrib.tpu.TPUEstimatorSpec
    """,
    "toolkit.tensorflow.estimators.run_config": "estimator.RunConfig estimator.ModeKeys",
    "toolkit.tensorflow.estimators.spec": "estimator.EstimatorSpec",
    "toolkit.tensorflow.estimators.estimator": "estimator.Estimator estimator.WarmStartSettings",
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
