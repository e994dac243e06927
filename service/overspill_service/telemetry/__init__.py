"""Telemetry for operators: logs and metrics."""
