"""Quality of the service that doctors receive: alerts about figures, evaluations of conversations, and the guidance for
the language model that is derived from the evaluations.
"""
