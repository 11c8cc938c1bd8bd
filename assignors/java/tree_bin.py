"""Model a HashMap bucket that has become a red-black tree, which only colliding keys ever cause.

Given      nodes of one bucket, in the order of their chain
Keeps      `chain`, the order in which Java walks the bucket. The tree matters only because it decides that order.
           A new key is linked directly behind its parent in the tree, and the root always moves to the front
Reference  java.util.HashMap.TreeNode of JDK 17: treeify, putTreeVal, moveRootToFront, balanceInsertion
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

Key = TypeVar("Key")


class Node(Generic[Key]):
    __slots__ = ("children", "hash", "key", "parent", "red")

    def __init__(self, key: Key, spread_hash: int) -> None:
        self.key = key
        # Java compares hashes as signed ints.
        self.hash = spread_hash - (1 << 32) if spread_hash >> 31 else spread_hash
        self.parent: Node[Key] | None = None
        self.children: list[Node[Key] | None] = [None, None]
        self.red = False


class TreeBin(Generic[Key]):
    def __init__(self, nodes: Iterable[Node[Key]], sort_key: Callable[[Key], Any]) -> None:
        self.chain = list(nodes)
        self.sort_key = sort_key
        self.root: Node[Key] | None = None
        for node in self.chain:
            node.parent, node.children, node.red = None, [None, None], False
            self._attach(node)
        self._move_root_to_front()

    def insert(self, node: Node[Key]) -> None:
        parent = self._attach(node)
        place = 0 if parent is None else self.chain.index(parent) + 1
        self.chain.insert(place, node)
        self._move_root_to_front()

    def _attach(self, node: Node[Key]) -> Node[Key] | None:
        """Attach a node to the tree, ordered by hash and then by key, and return its parent."""
        parent, below, side = None, self.root, 0
        while below is not None:
            parent = below
            if below.hash != node.hash:
                side = int(below.hash < node.hash)
            else:
                side = int(self.sort_key(node.key) > self.sort_key(below.key))
            below = below.children[side]
        node.parent = parent
        if parent is not None:
            parent.children[side] = node
        self._balance(node)
        return parent

    def _balance(self, node: Node[Key]) -> None:
        node.red = True
        while (parent := node.parent) is not None and parent.red and (grandparent := parent.parent) is not None:
            side = int(parent is grandparent.children[1])
            uncle = grandparent.children[1 - side]
            if uncle is not None and uncle.red:
                parent.red = uncle.red = False
                grandparent.red = True
                node = grandparent
                continue
            if node is parent.children[1 - side]:
                self._rotate(parent, side)
                parent = node
            parent.red = False
            grandparent.red = True
            self._rotate(grandparent, 1 - side)
            break
        while node.parent is not None:
            node = node.parent
        self.root = node
        node.red = False

    @staticmethod
    def _rotate(node: Node[Key], side: int) -> None:
        """Move the child on the other side to the node's place; the node becomes its child on this side."""
        child = node.children[1 - side]
        assert child is not None
        inner = node.children[1 - side] = child.children[side]
        if inner is not None:
            inner.parent = node
        above = child.parent = node.parent
        if above is not None:
            above.children[int(above.children[1] is node)] = child
        child.children[side] = node
        node.parent = child

    def _move_root_to_front(self) -> None:
        assert self.root is not None
        self.chain.remove(self.root)
        self.chain.insert(0, self.root)
