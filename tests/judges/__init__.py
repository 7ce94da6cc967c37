"""Functions that judge recorded runs. They compare evidence from independent sources, and share no code with the
components that they judge.
"""
