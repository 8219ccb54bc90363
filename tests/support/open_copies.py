"""Copies of libraries where every user can read them.

Where assay is root, the process that drives a GPU is another user, and may not enter a closed folder, as one
with a build often is.
"""
import atexit
import pathlib
import shutil
import tempfile


def open_copies(*libraries):
    """Paths of copies, in a folder that is gone when this process ends."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-open-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    folder.chmod(0o755)
    return [pathlib.Path(shutil.copy(library, folder)) for library in libraries]
