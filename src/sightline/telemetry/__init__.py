"""Duration, tokens and cost of exchanges, runs and evals as spans, logs and metrics, for OpenTelemetry and Prometheus.

It may import `agent`, `evals`, `exchange` and everything below. It sends OTLP over HTTP as JSON with our own client, to
a collector that the user has named. It observes what is recorded and never delays an exchange: what a collector does
not accept in time is dropped and logged.
"""
