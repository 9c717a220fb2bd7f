"""Summaries for TensorBoard, and lines that a step prints."""
