"""Quality of the service to doctors: alerts about measured figures, evaluations of conversations, and the guidance for
the model that follows from the evaluations.
"""
