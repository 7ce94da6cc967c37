"""Read operators' documents from a folder of Markdown files or from Google Docs."""
