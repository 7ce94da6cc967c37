"""Quality of the service that doctors receive: alerts about measured figures, evaluations of conversations, and the
guidance for the model that is made from them.
"""
