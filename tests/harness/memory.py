"""Temporary folders of tests are in memory, where nothing waits for a disk."""
import os
import tempfile

MEMORY = "/dev/shm"
MEMORY_BYTES = 1 << 30  # needed at most


def use():
    """For tempfile, unless TMPDIR names a place, or there is too little memory, or programs cannot be started from it."""
    if os.environ.get("TMPDIR") or not os.access(MEMORY, os.W_OK):
        return
    about = os.statvfs(MEMORY)
    if about.f_bavail * about.f_frsize >= MEMORY_BYTES and not about.f_flag & os.ST_NOEXEC:
        tempfile.tempdir = MEMORY
