"""Read the documents of operators from a folder of Markdown files."""
