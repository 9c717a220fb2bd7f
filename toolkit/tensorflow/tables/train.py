"""tf.train and tf.summary."""

HOMES: dict[str, str] = {
    "toolkit.tensorflow.families.train.optimizers": """
        train.Optimizer train.GradientDescentOptimizer train.MomentumOptimizer train.AdamOptimizer
        train.AdagradOptimizer train.AdadeltaOptimizer train.RMSPropOptimizer
        train.FtrlOptimizer train.AdagradDAOptimizer train.ProximalAdagradOptimizer
        train.ProximalGradientDescentOptimizer train.ExponentialMovingAverage
    """,
    "toolkit.tensorflow.families.train.saver": """
        train.Saver train.export_meta_graph train.import_meta_graph train.latest_checkpoint
        train.get_checkpoint_state
        train.checkpoint_exists train.NewCheckpointReader train.load_checkpoint train.load_variable
        train.list_variables
    """,
    "toolkit.tensorflow.families.train.training": """
        train.get_global_step train.create_global_step train.get_or_create_global_step train.global_step
        train.queue_runner.start_queue_runners train.queue_runner.add_queue_runner io.write_graph summary.scalar
        summary.histogram summary.image summary.audio summary.text summary.tensor_summary
        summary.get_summary_description
        summary.merge summary.merge_all summary.FileWriter train.summary_iterator
        train.assert_global_step train.basic_train_loop
    """,
    "toolkit.tensorflow.families.train.learning_rates": """
        train.exponential_decay train.natural_exp_decay train.inverse_time_decay train.polynomial_decay
        train.cosine_decay train.cosine_decay_restarts train.linear_cosine_decay train.noisy_linear_cosine_decay
        train.piecewise_constant_decay
    """,
    "toolkit.tensorflow.families.train.object_checkpoints": """
        train.Checkpoint train.CheckpointManager train.CheckpointOptions
    """,
    "toolkit.client.trackables": "train.experimental.PythonState",
    "toolkit.tensorflow.families.train.coordinators": "train.Coordinator train.LooperThread",
    "toolkit.tensorflow.families.train.session_hooks": """
        train.SessionRunHook train.SessionRunArgs train.SessionRunContext train.SessionRunValues
        train.SecondOrStepTimer train.StopAtStepHook train.LoggingTensorHook train.NanLossDuringTrainingError
        train.NanTensorHook train.GlobalStepWaiterHook train.FinalOpsHook train.FeedFnHook
    """,
    "toolkit.tensorflow.families.train.saving_hooks": """
        train.CheckpointSaverListener train.CheckpointSaverHook train.StepCounterHook train.SummarySaverHook
        train.ProfilerHook summary.FileWriterCache
    """,
    "toolkit.tensorflow.families.platform.timeline": "python.client.timeline.Timeline",
    "toolkit.tensorflow.families.train.scaffold": "train.Scaffold",
    "toolkit.tensorflow.families.train.checkpoint_files": """
        train.generate_checkpoint_state_proto train.update_checkpoint_state train.get_checkpoint_mtimes
        train.remove_checkpoint train.checkpoints_iterator
        contrib.training.wait_for_new_checkpoint contrib.training.checkpoints_iterator
    """,
    "toolkit.tensorflow.families.contrib.training": """
        contrib.training.get_or_create_eval_step contrib.training.StopAfterNEvalsHook contrib.training.SummaryAtEndHook
        contrib.training.evaluate_once contrib.training.evaluate_repeatedly contrib.training.train
    """,
    "toolkit.tensorflow.families.contrib.external_optimizers": """
        contrib.opt.ExternalOptimizerInterface contrib.opt.ScipyOptimizerInterface
    """,
    "toolkit.tensorflow.families.contrib.optimizers": """
        contrib.opt.DecoupledWeightDecayExtension contrib.opt.extend_with_decoupled_weight_decay
        contrib.opt.AdamWOptimizer contrib.opt.MomentumWOptimizer contrib.opt.NadamOptimizer
        contrib.opt.LazyAdamOptimizer contrib.opt.LARSOptimizer contrib.opt.clip_gradients_by_global_norm
        contrib.opt.AdaMaxOptimizer contrib.opt.AdamGSOptimizer contrib.opt.LazyAdamGSOptimizer
        contrib.opt.RegAdagradOptimizer contrib.opt.AddSignOptimizer contrib.opt.PowerSignOptimizer
        contrib.opt.MovingAverageOptimizer contrib.opt.VariableClippingOptimizer
        contrib.opt.DropStaleGradientOptimizer contrib.opt.MultitaskOptimizerWrapper
    """,
    "toolkit.tensorflow.families.train.sync_replicas": "train.SyncReplicasOptimizer",
    "toolkit.tensorflow.families.train.loss_scales": """
        mixed_precision.LossScale mixed_precision.FixedLossScale mixed_precision.DynamicLossScale
        mixed_precision.MixedPrecisionLossScaleOptimizer mixed_precision.enable_mixed_precision_graph_rewrite
        mixed_precision.disable_mixed_precision_graph_rewrite
    """,
    "toolkit.tensorflow.families.train.supervisor": "train.Supervisor",
    "toolkit.tensorflow.families.framework.handles": "get_session_handle get_session_tensor delete_session_tensor",
    "toolkit.tensorflow.families.train.cluster": """
        train.ClusterSpec train.Server train.replica_device_setter DeviceSpec
    """,
    "toolkit.tensorflow.families.framework.variable_scopes": """
        make_template variable_creator_scope variable_op_scope create_partitioned_variables
    """,
    "toolkit.tensorflow.families.train.session_manager": "train.SessionManager",
    "toolkit.tensorflow.families.train.monitored": """
        train.SessionCreator train.ChiefSessionCreator train.WorkerSessionCreator train.MonitoredSession
        train.SingularMonitoredSession train.MonitoredTrainingSession
    """,
}
