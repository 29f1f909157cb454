"""Runs of the tool loop: the pure loop's steps carried out, with a model that answers, tools that run and people who
decide, and every one of them a fact in a log before anything follows from it.

It may import what the engine may, and `tools`. It decides nothing that the loop decides, and sends nothing past the
relay: each round is an exchange on record. A run whose process was ended goes on from its facts, and no tool that came
to its end runs a second time.
"""
