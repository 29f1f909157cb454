"""The composition root: builds the program from its parts. Clock, randomness, environment and files enter here.

It may import everything below the command line. It makes objects and connects them; what they decide is in the packages
below.
"""
