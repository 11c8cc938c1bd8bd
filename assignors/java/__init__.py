"""Walk Java's hash collections in Java's order, for the choices of Kafka's assignors that depend on it.

hash_order.py  HashMap and HashSet; tree_bin.py: a bucket that has become a red-black tree
"""
