"""The smallest site that shows what readtrack weighs, for `tests/weight.py`.

It is copied into a temporary folder, and imported there beside any version of readtrack. So it uses
public names alone, and is imported by no other module of the tests.
"""
