"""The quality of Julia's service to doctors: alerts about figures, evaluations of conversations, and guidance for the
language model that is derived from the evaluations.
"""
