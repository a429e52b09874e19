"""This documentation, and what writes the parts of it that are read out of the code."""
