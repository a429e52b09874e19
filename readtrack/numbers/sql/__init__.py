"""The tables of numbers by time, and the statements that read and write them."""
