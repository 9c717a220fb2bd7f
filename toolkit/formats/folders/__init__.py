"""Folders of partitions, and folders as streams."""
