"""A package that tests send to workers."""
