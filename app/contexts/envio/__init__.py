"""The send protocol: it sends each queued message exactly once, records the result, and resolves messages in doubt
(messages that may or may not have been sent).
"""
