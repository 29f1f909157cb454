"""The built-in tools: read, list, search, write and edit files of one folder, and run commands in it.

They are off unless a folder is configured. No path that a model writes leads out of the folder: each component of a
path is opened relative to the previous one, and links are followed only inside the folder.
"""
