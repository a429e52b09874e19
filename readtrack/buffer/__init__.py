"""The part with which views wait in the process, and many of them are sent by one script.

`queue.py` has the hits that wait and the thread that sends them, `waiting.py` the forms in which
they wait, and `batch.py` makes one script of many of them.
"""
