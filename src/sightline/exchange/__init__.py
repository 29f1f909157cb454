"""One exchange: the path of a request from its arrival to its recorded response.

`run.run_exchange` is that path from top to bottom, `exchange.Exchange` the state of one request. `relay.Relay` starts
exchanges, and `engine.Engine` sends Sightline's own requests through it. It may import `web`, `store`, `transport`,
`platform` and every pure package. It does not depend on any feature: chat, agent and evals call it, and it never calls
them.
"""
