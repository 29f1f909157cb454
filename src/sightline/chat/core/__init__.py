"""The chat's core: what is visible is what is sent.

Pairs of question and answer in a tree of topics, their history as facts, which of them a filter shows, which of those
go along with the next question, how a request is made of them and made smaller when a provider finds it too large, and
how chats come in from elsewhere and go out again. It may import `dialects`, `filters`, `tokens` and what is below them.
It never sends, stores or reads the clock: outcomes, times and ids are handed in.
"""
