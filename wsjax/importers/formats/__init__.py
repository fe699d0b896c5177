"""One module a format: how a file of it is recognised, read a piece at a time, and translated."""
