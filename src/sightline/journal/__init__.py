"""What the chat, the agent and the evals share to survive the end of a process: `Journal` and `drive`.

`Journal` keeps the facts of a log and the state that they fold to; `drive` runs a pure generator core. It may import
the exchange and everything below; it does not know any feature.
"""
