"""The pages of the dashboard: one module per page or group of pages."""
