"""The dashboard's actions, one module per subject. The module ``perform`` shows and performs an action."""
