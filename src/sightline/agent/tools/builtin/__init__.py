"""The built-in tools: reading, listing, searching, writing and editing files of one folder, and running commands in it.

They are off unless somebody names the folder. It may import what `tools` may. No path that a model writes leads out of
the folder: every step of it is opened by itself, relative to the one before, and links are followed only inside.
"""
