"""A file system that shows late what other hosts change, as those of several machines do.

Usage: late.py FOLDER MOUNT SECONDS [listings]

It shows FOLDER at MOUNT, and remembers for so many seconds what it has seen: that a name was absent, what a name stands
for, and attributes. What is changed through this mount is seen through it at once. A listing of a folder shows what is
there, as on NFS, which asks the server when a folder is opened; with a further argument `listings` it is remembered,
too. It prints a line when it is mounted, and ends when its standard input does.

It speaks the kernel's FUSE protocol itself (`linux/fuse.h`), so it needs `/dev/fuse` and root, and no library.
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
import stat
import struct
import sys
import time
from pathlib import Path

HEADER = struct.Struct("<IIQQIIII")
MS_NOSUID, MS_NODEV, MNT_DETACH = 2, 4, 2
BUFFER = 1 << 20
MAX_WRITE = 1 << 17
SETS_MODE, SETS_SIZE = 1, 8

(LOOKUP, FORGET, GETATTR, SETATTR, MKNOD, MKDIR, UNLINK, RMDIR, RENAME) = (1, 2, 3, 4, 8, 9, 10, 11, 12)
(OPEN, READ, WRITE, STATFS, RELEASE, FSYNC, FLUSH, INIT, OPENDIR) = (14, 15, 16, 17, 18, 20, 25, 26, 27)
(READDIR, RELEASEDIR, CREATE, INTERRUPT, DESTROY, BATCH_FORGET, RENAME2) = (28, 29, 35, 36, 38, 42, 45)


class LateFolder:
    """What the kernel asks, and what it is answered."""

    def __init__(self, root: str, seconds: float, listings: bool) -> None:
        self.root, self.listings = root, listings
        self.seconds = seconds
        #: How long the kernel may remember an answer: seconds and nanoseconds.
        self.valid = (int(seconds), int(seconds % 1 * 1e9))
        self.paths = {1: root}
        self.nodes: dict[tuple[str, int], int] = {}
        self.remembered: dict[str, tuple[float, list[tuple[str, int, int]]]] = {}
        self.handles: dict[int, list[tuple[str, int, int]]] = {}
        self.last = 1

    def child(self, node: int, name: bytes) -> str:
        return f"{self.paths[node]}/{os.fsdecode(name)}"

    def changed(self, path: str) -> None:
        self.remembered.pop(str(Path(path).parent), None)

    def attributes(self, found: os.stat_result) -> bytes:
        times = [found.st_atime_ns, found.st_mtime_ns, found.st_ctime_ns]
        whole, rest = [at // 10**9 for at in times], [at % 10**9 for at in times]
        numbers = (found.st_ino, found.st_size, found.st_blocks, *whole, *rest, found.st_mode, found.st_nlink)
        return struct.pack("<6Q10I", *numbers, found.st_uid, found.st_gid, found.st_rdev, found.st_blksize, 0)

    def entry(self, path: str) -> bytes:
        """What a name stands for; remembered by the kernel, and so is that there is nothing of this name."""
        try:
            return self.entry_of(path, os.lstat(path))
        except FileNotFoundError:
            seconds, rest = self.valid
            return struct.pack("<4Q2I", 0, 0, seconds, 0, rest, 0) + bytes(88)

    def entry_of(self, path: str, found: os.stat_result) -> bytes:
        seconds, rest = self.valid
        key = (path, found.st_ino)
        if key not in self.nodes:
            self.last += 1
            self.nodes[key] = self.last
        node = self.nodes[key]
        self.paths[node] = path
        return struct.pack("<4Q2I", node, 0, seconds, seconds, rest, rest) + self.attributes(found)

    def attribute_answer(self, node: int) -> bytes:
        seconds, rest = self.valid
        return struct.pack("<QII", seconds, rest, 0) + self.attributes(os.lstat(self.paths[node]))

    def set_attributes(self, node: int, body: bytes) -> bytes:
        which, _, _, size, *_ = struct.unpack_from("<IIQQ", body)
        (mode,) = struct.unpack_from("<I", body, 68)
        if which & SETS_MODE:
            Path(self.paths[node]).chmod(stat.S_IMODE(mode))
        if which & SETS_SIZE:
            os.truncate(self.paths[node], size)
        return self.attribute_answer(node)

    def make(self, kind: int, node: int, body: bytes) -> bytes:
        skip = {MKNOD: 16, MKDIR: 8, CREATE: 16}[kind]
        path = self.child(node, body[skip:].rstrip(b"\0"))
        # The other host may remove a file at once: what was made is asked by its descriptor.
        if kind == MKDIR:
            (mode,) = struct.unpack_from("<I", body)
            Path(path).mkdir(mode)
            answer = self.entry(path)
        elif kind == CREATE:
            flags, mode = struct.unpack_from("<II", body)
            handle = os.open(path, flags | os.O_CREAT, mode)
            answer = self.entry_of(path, os.fstat(handle)) + struct.pack("<QII", handle, 0, 0)
        else:
            (mode,) = struct.unpack_from("<I", body)
            handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
            answer = self.entry_of(path, os.fstat(handle))
            os.close(handle)
        self.changed(path)
        return answer

    def remove(self, kind: int, node: int, body: bytes) -> bytes:
        path = self.child(node, body.rstrip(b"\0"))
        (os.rmdir if kind == RMDIR else os.unlink)(path)
        self.changed(path)
        return b""

    def rename(self, node: int, body: bytes, skip: int) -> bytes:
        (to,) = struct.unpack_from("<Q", body)
        names = body[skip:].split(b"\0")
        old, new = self.child(node, names[0]), self.child(to, names[1])
        inode = os.lstat(old).st_ino
        Path(old).rename(new)
        known = self.nodes.pop((old, inode), None)
        if known is not None:
            self.nodes[new, inode] = known
            self.paths[known] = new
        self.changed(old)
        self.changed(new)
        return b""

    def listing(self, path: str) -> list[tuple[str, int, int]]:
        now = time.monotonic()
        at, names = self.remembered.get(path, (-1e9, []))
        if not self.listings or now >= at + self.seconds:
            names = [(each.name, each.inode(), 4 if each.is_dir() else 8) for each in os.scandir(path)]
            self.remembered[path] = (now, names)
        return names

    def read_folder(self, body: bytes) -> bytes:
        handle, offset, size = struct.unpack_from("<QQI", body)
        answer = b""
        for at, (name, inode, kind) in enumerate(self.handles[handle][offset:], offset + 1):
            encoded = os.fsencode(name)
            each = struct.pack("<QQII", inode, at, len(encoded), kind) + encoded
            each += bytes(-len(each) % 8)
            if len(answer) + len(each) > size:
                break
            answer += each
        return answer

    def open_folder(self, node: int) -> bytes:
        self.last += 1
        self.handles[self.last] = self.listing(self.paths[node])
        return struct.pack("<QII", self.last, 0, 0)

    def answer(self, kind: int, node: int, body: bytes) -> bytes | None:
        """The answer to a question; `None` if none is expected."""
        if kind in (FORGET, BATCH_FORGET, INTERRUPT):
            return None
        if kind == INIT:
            return struct.pack("<IIIIHHIIHHI28x", 7, 31, 1 << 17, 1 << 5, 16, 12, MAX_WRITE, 1, 0, 0, 0)
        if kind == LOOKUP:
            return self.entry(self.child(node, body.rstrip(b"\0")))
        if kind == GETATTR:
            return self.attribute_answer(node)
        if kind == SETATTR:
            return self.set_attributes(node, body)
        if kind in (MKNOD, MKDIR, CREATE):
            return self.make(kind, node, body)
        if kind in (UNLINK, RMDIR):
            return self.remove(kind, node, body)
        if kind in (RENAME, RENAME2):
            return self.rename(node, body, 8 if kind == RENAME else 16)
        if kind == OPENDIR:
            return self.open_folder(node)
        if kind == READDIR:
            return self.read_folder(body)
        if kind == RELEASEDIR:
            del self.handles[struct.unpack_from("<Q", body)[0]]
            return b""
        return self.answer_about_file(kind, node, body)

    def answer_about_file(self, kind: int, node: int, body: bytes) -> bytes:
        if kind == OPEN:
            flags = struct.unpack_from("<I", body)[0] & ~(os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW)
            return struct.pack("<QII", os.open(self.paths[node], flags), 0, 0)
        if kind == STATFS:
            found = os.statvfs(self.root)
            counts = (found.f_blocks, found.f_bfree, found.f_bavail, found.f_files, found.f_ffree)
            return struct.pack("<5Q4I24x", *counts, found.f_bsize, found.f_namemax, found.f_frsize, 0)
        if kind in (FLUSH, FSYNC, DESTROY):
            return b""
        if kind not in (READ, WRITE, RELEASE):
            raise OSError(errno.ENOSYS, "not answered here")
        handle, offset, size = struct.unpack_from("<QQI", body)
        if kind == READ:
            return os.pread(handle, size, offset)
        if kind == WRITE:
            return struct.pack("<II", os.pwrite(handle, body[40 : 40 + size], offset), 0)
        os.close(handle)
        return b""


def serve(device: int, folder: LateFolder) -> None:
    """Answers until the standard input ends."""
    while True:
        ready, _, _ = select.select([device, sys.stdin], [], [])
        if sys.stdin in ready:
            return
        asked = os.read(device, BUFFER)
        length, kind, unique, node, *_ = HEADER.unpack_from(asked)
        try:
            number, answer = 0, folder.answer(kind, node, asked[HEADER.size : length])
        except OSError as error:
            number, answer = -(error.errno or errno.EIO), b""
        if answer is not None:
            os.write(device, struct.pack("<IiQ", 16 + len(answer), number, unique) + answer)


def main() -> None:
    root, mount, seconds, *more = sys.argv[1:]
    libc = ctypes.CDLL(None, use_errno=True)
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions".encode()
    if libc.mount(b"late", mount.encode(), b"fuse", MS_NOSUID | MS_NODEV, options) != 0:
        sys.exit(f"{mount}: {os.strerror(ctypes.get_errno())}")
    print("mounted", flush=True)
    try:
        serve(device, LateFolder(root, float(seconds), more == ["listings"]))
    finally:
        libc.umount2(mount.encode(), MNT_DETACH)


main()
