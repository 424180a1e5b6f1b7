"""Other libraries' names for what Penstock does."""
