"""The composition root: builds the object graph of an application and of one process."""
