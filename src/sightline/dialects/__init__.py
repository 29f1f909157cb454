"""Dialects: each provider's API as pure functions between its JSON and the canonical values, in both directions.

There is one folder per dialect, and one line in the registry. The modules beside the folders are shared by the
dialects: typed access to foreign JSON, option tables, ordering of stream events, and translation itself. The package
may import `wire`, `catalog`, `model` and `errors`; it never does I/O, and no dialect reads another's wire format.
"""
