"""What every HTTP API needs: ASGI types, the origin guard, routes, typed bodies and replies.

It may import the values, and nothing that knows a feature. It never decides what a call does.
"""
