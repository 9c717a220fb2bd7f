"""Training that survives: scaffold, session manager, hooks, monitored sessions (MonitoredTrainingSession)."""
