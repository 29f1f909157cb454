"""What every HTTP API needs: ASGI types, the origin guard, routes, typed bodies and replies.

It may import `platform` and every pure package, but no feature. It never decides what a call does.
"""
