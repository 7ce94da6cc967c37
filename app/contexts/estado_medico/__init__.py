"""The state of each doctor: temperature (interest in shifts), lifecycle stage, permission to write, and objections.
Some sending rules depend on this state.
"""
