"""The HTTP calls for runs and approvals.

It may import the agent's service and what every HTTP API needs. It holds no runs and makes no decisions about them: it
passes the user's actions to the service.
"""
