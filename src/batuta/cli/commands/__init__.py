"""The commands of ``batuta``, one module per subject. A module is imported when an operator calls one of its commands."""
