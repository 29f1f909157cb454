"""The tool-calling loop, as a generator that yields one step at a time and is sent the answer to it.

It yields `AskModel`, `Approve`, `Use`, `Confirm` and `Rest`, and is sent replies, decisions, outcomes and
confirmations. A live run, a page that steps through a run, an eval and a test are all drivers of the same generator.
This package may import `dialects`, `filters`, `tokens` and the packages below them. It never sends, runs tools, waits,
reads a clock or stores anything: time and results are passed in. A run is a list of facts, from which the generator can
be restored to where it was.
"""
