"""What the chat, the agent and the evals share to survive the end of a process: `Journal` and `drive`.

`journal` keeps the facts of one log and the state that they fold to; `driver` runs a pure generator core. It may import
the exchange and everything below; it knows no feature.
"""
