"""on-terminal.py [EXPECT SEND]... -- COMMAND...: run a command on a separate terminal.

For each pair, waits until EXPECT has been printed (or, if it is @FILE, until the file exists) and
sends SEND (with \\xNN escapes); then reads to the end. Prints the output, and "status N" as the last
line. If an event does not happen within 20 s, the status is 99.
"""
import codecs
import os
import pty
import select
import signal
import sys
import time

LIMIT_S = 20


def has_come(event, seen):
    return os.path.exists(event[1:]) if event.startswith("@") else event.encode() in seen


def read_some(fd):
    ready, _, _ = select.select([fd], [], [], 0.05)
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
        for number in (signal.SIGINT, signal.SIGQUIT):  # a shell ignores them for what it starts with &
            signal.signal(number, signal.SIG_DFL)
        os.execvp(command[0], command)
    seen, new = b"", b""
    until = time.monotonic() + LIMIT_S
    while time.monotonic() < until:
        while pairs and has_come(pairs[0], new):
            os.write(fd, codecs.escape_decode(pairs[1])[0])
            pairs, new = pairs[2:], b""  # what comes after it
        data = read_some(fd)
        if data == b"":
            break
        seen += data or b""
        new += data or b""
    else:
        os.kill(pid, 9)
        print(f"{seen.decode(errors='replace')}\nno '{pairs[0] if pairs else 'end'}' in {LIMIT_S} s\nstatus 99")
        return
    _, status = os.waitpid(pid, 0)
    print(seen.decode(errors="replace").replace("\r\n", "\n"))
    print("status", os.waitstatus_to_exitcode(status))


main()
