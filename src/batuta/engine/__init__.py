"""The composition root: builds an application's objects and the loops that each process runs."""
