"""The agent: a model that calls tools.

`core` is the pure loop, `tools` runs the tools, `service` drives a run and keeps its log, and `api` has its HTTP calls.
It may import the exchange and everything below it. It sends requests only through the exchange.
"""
