"""Quality of the service to doctors: alerts from measured figures, evaluations of conversations, the guidance from both."""
