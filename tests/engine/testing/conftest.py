from batuta.testing.plugin import batuta_kit, batuta_templates

__all__ = ["batuta_kit", "batuta_templates"]
