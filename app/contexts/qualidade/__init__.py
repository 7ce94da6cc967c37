"""The quality of Julia's service to doctors: alerts if a figure exceeds its threshold, evaluations of conversations,
and guidance for the language model that is derived from the evaluations.
"""
