"""The doctor examines the running system: it reports findings, says what to do, and changes
nothing.
"""
