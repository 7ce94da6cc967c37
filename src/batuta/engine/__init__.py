"""The composition root: builds the objects of an application and the loops of one process."""
