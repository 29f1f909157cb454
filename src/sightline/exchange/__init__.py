"""One request's whole way: routed, translated, held, sent, read, answered and recorded.

`run.run_exchange` is that way from top to bottom, `exchange.Exchange` the state of one request, `relay.Relay` starts
exchanges, `engine.Engine` sends the requests of our own callers by it. It may import web, store, transport and the
pure packages. It knows no feature: chat, agent and evals call it, and it never calls them.
"""
