"""The send protocol: it sends each queued message exactly once, records the send, and resolves messages in doubt."""
