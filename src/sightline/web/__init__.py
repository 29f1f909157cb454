"""What every HTTP front needs: the ASGI types, who is let in, routes, typed bodies and replies.

It may import the values and nothing that knows a feature. It never decides what a call does.
"""
