"""Exchanges as spans for an OpenTelemetry collector, off unless a person names one.

It may import what the engine may, and sends OTLP over HTTP as JSON through our own client. It watches what is recorded
and never holds up an exchange: what a collector does not take in time is dropped and logged.
"""
