"""Dialects: each provider's API as pure functions between its JSON and the canonical values, in both directions.

One folder a dialect, one line in the registry. The modules beside the folders are what dialects share: typed access
to foreign JSON, option tables, ordering of stream events, and translation itself. It may import `wire`,
`catalog`, `model` and `errors`; it never does I/O, and one dialect never reads another's wire.
"""
