"""Copies of libraries where every user can read them.

Where assay runs as root, the process that drives a GPU runs as another user. That user may not be able to enter the
build folder, which is often closed to others.
"""
import atexit
import pathlib
import shutil
import tempfile


def open_copies(*libraries):
    """Paths of the copies, in a folder that is removed when this process ends."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-open-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    folder.chmod(0o755)
    return [pathlib.Path(shutil.copy(library, folder)) for library in libraries]
