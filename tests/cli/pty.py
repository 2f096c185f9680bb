"""pty.py [EXPECT SEND]... -- COMMAND...: run a command on a terminal of its own.

Waits until EXPECT has been printed, sends SEND (with \\xNN escapes), for each pair; then reads to the end.
Prints what came, and as the last line "status N". An event that does not come in 20 s ends it with status 99.
"""
import codecs
import os
import pty
import select
import sys
import time

LIMIT_S = 20


def read_some(fd, until):
    ready, _, _ = select.select([fd], [], [], max(until - time.monotonic(), 0))
    if not ready:
        return None
    try:
        return os.read(fd, 65536)
    except OSError:  # Linux: the other side is closed
        return b""


def main():
    split = sys.argv.index("--")
    pairs, command = sys.argv[1:split], sys.argv[split + 1:]
    pid, fd = pty.fork()
    if pid == 0:
        os.execvp(command[0], command)
    seen, at = b"", 0
    until = time.monotonic() + LIMIT_S
    while True:
        while pairs and pairs[0].encode() in seen[at:]:
            at = seen.index(pairs[0].encode(), at) + len(pairs[0].encode())
            os.write(fd, codecs.escape_decode(pairs[1])[0])
            pairs = pairs[2:]
        data = read_some(fd, until)
        if data is None:
            os.kill(pid, 9)
            print(seen.decode(errors="replace"), f"\nno '{pairs[0] if pairs else 'end'}' in {LIMIT_S} s", "\nstatus 99")
            return
        if not data:
            break
        seen += data
    _, status = os.waitpid(pid, 0)
    print(seen.decode(errors="replace").replace("\r\n", "\n"))
    print("status", os.waitstatus_to_exitcode(status))


main()
