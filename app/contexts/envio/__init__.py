"""The send protocol: sends each queued message exactly once, records sends, and resolves messages in doubt."""
