"""The pure core of the chat: what is visible is what is sent.

It has the pairs of question and answer in a tree of topics, their history as facts, the filters that choose the visible
pairs, the boundary of those that are sent, the request built from them and how it shrinks when a provider finds it too
large, and imports and exports. It may import `dialects`, `filters`, `tokens` and the packages below them. It never
sends, stores or reads the clock: outcomes, times and ids are passed in.
"""
