"""What exchanges, runs and evals took, as spans, logs and metrics: for an OpenTelemetry collector and for Prometheus.

It may import what the engine may, and sends OTLP over HTTP as JSON through our own client, to a collector that a person
has named. It watches what is recorded and never holds up an exchange: what a collector does not take in time is dropped
and logged.
"""
