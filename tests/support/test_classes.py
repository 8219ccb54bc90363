"""Prints the unittest classes of a file that have tests, own or inherited, separated by semicolons.

Usage: test_classes.py FILE. Reads the file without running it.
"""
import ast
import pathlib
import sys

classes = {node.name: node for node in ast.parse(pathlib.Path(sys.argv[1]).read_text()).body
           if isinstance(node, ast.ClassDef)}


def has_tests(node):
    bases = [classes[base.id] for base in node.bases if isinstance(base, ast.Name) and base.id in classes]
    return any(isinstance(part, ast.FunctionDef) and part.name.startswith("test") for part in node.body) or any(
        map(has_tests, bases))


def is_case(node):
    """Whether a class is a test case, not a mixin whose tests run in the classes that use it.
    A base class from another file counts as a test case."""
    return any(is_case(classes[base.id]) if isinstance(base, ast.Name) and base.id in classes else True
               for base in node.bases)


print(";".join(name for name, node in classes.items() if has_tests(node) and is_case(node)))
