"""The site of a rolling deploy. It uses public names alone, because each version of readtrack runs it.

It is no part of the package `tests`, whose other parts import the readtrack of the checkout.
"""
