"""A Redis Cluster: keys in partitions, so that each server has some of them.

`client.py` sends each command to the server of its keys, and `connection.py` makes that client of
the site's cache. `repartitioning.py` moves the keys after the number of partitions was multiplied.
Which key is of which partition is the core's, because one server is the same with one partition.
"""
