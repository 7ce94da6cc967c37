"""The state of each doctor: temperature (interest in shifts), stage of the lifecycle, permission to write, objections.
Some sending rules depend on it.
"""
