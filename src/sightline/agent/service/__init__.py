"""Runs of the tool loop: carries out the steps of the pure loop, with a model that answers, tools that run and people
who decide. Every answer is a fact in a log before anything follows from it.

It may import `agent.core`, `agent.tools`, `exchange` and everything below. It decides nothing that the loop decides,
and sends requests only through the relay, so each round is a recorded exchange. A run whose process has ended is
resumed from its facts, and no tool that finished runs a second time.
"""
