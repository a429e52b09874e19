"""The only place that names Redis: one module for each shape of data, one script for each
operation.
"""
