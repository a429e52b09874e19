"""Parts for other packages, each imported by sites that have the package."""
