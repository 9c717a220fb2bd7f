"""What a session's state is saved to and restored from: checkpoints, SavedModels, objects."""
