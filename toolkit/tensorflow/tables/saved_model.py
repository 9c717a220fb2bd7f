"""tf.saved_model."""

HOMES: dict[str, str] = {
    "toolkit.tensorflow.families.framework.saved_model": """
        saved_model.Builder=SavedModelBuilder saved_model.build_signature_def saved_model.build_tensor_info
        saved_model.classification_signature_def saved_model.contains_saved_model
        saved_model.get_tensor_from_tensor_info saved_model.is_valid_signature saved_model.load
        saved_model.main_op.main_op saved_model.main_op_with_restore saved_model.predict_signature_def
        saved_model.regression_signature_def saved_model.signature_def_utils.MethodNameUpdater saved_model.simple_save
    """,
}
