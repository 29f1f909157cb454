"""The HTTP calls about runs and approvals.

It may import the agent's service and what every HTTP front needs. It holds no run and decides nothing about one: what a
person does, the service does.
"""
