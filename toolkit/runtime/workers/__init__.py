"""Who runs the parts of a step: one worker for each task."""
