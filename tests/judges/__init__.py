"""Functions that judge recorded runs. They compare evidence from independent sources, and share no code with the parts
that they judge.
"""
