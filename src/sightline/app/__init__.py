"""The composition root: builds the program from its parts. Clock, randomness, environment and files enter here.

The package may import everything below the command line. It creates objects and connects them; the packages below make
the decisions.
"""
