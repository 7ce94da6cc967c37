"""The actions of the dashboard, by subject. ``perform`` shows and performs an action."""
