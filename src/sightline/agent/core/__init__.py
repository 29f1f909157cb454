"""The tool-calling loop as a generator that asks for one thing at a time and is sent what came of it.

It yields `AskModel`, `Approve`, `Use`, `Confirm` and `Rest`, and is sent replies, decisions, outcomes and
confirmations; a live run, a stepping page, an eval and a test are drivers of the same generator. It may import
`dialects`, `filters`, `tokens` and what is below them. It never sends, runs, waits, reads a clock or keeps anything:
time and results are handed in, and a run is a list of facts from which the generator can be brought back to where it
stood.
"""
