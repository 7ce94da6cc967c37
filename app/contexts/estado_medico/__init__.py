"""The state of each doctor: temperature, lifecycle, permission, objections. Some rules of sending depend on it."""
