#!/usr/bin/python3
"""A classic lock client: SET NX EX and compare-and-delete; redis-py's own Lock, too. Reads one
command per line, answers with one line.

take NAME VALUE TTL_S    "yes" or "no"
take-bytes NAME HEX      the same with any bytes as the value, for 30 s
give-bytes NAME HEX
hash NAME                put a hash there instead
delete NAME
give NAME VALUE          "yes" if it was ours
value NAME               its value, or "-"
lock NAME TTL_S          redis-py's Lock, without waiting: "yes" or "no"
unlock                   give it back: "yes", or "no" if it was not ours any more
await NAME TTL_S         redis-py's Lock, waiting: "yes" when it has it
fill N                   so many other keys
scans                    how many SCANs the server has seen
"""
import sys

import redis

GIVE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"

FILL = "for i = 1, ARGV[1] do redis.call('set', 'other' .. i, '') end"


def main():
    server = redis.Redis(unix_socket_path=sys.argv[1], decode_responses=True)
    give = server.register_script(GIVE)
    lock = None
    print("ready", flush=True)
    for line in sys.stdin:
        word, *args = line.split()
        if word == "take":
            answer = "yes" if server.set(args[0], args[1], nx=True, ex=int(args[2])) else "no"
        elif word == "give":
            answer = "yes" if give(keys=[args[0]], args=[args[1]]) else "no"
        elif word == "take-bytes":
            answer = "yes" if server.set(args[0], bytes.fromhex(args[1]), nx=True, ex=30) else "no"
        elif word == "give-bytes":
            answer = "yes" if give(keys=[args[0]], args=[bytes.fromhex(args[1])]) else "no"
        elif word == "hash":
            answer = "yes" if server.hset(args[0], "a", "b") else "no"
        elif word == "delete":
            answer = "yes" if server.delete(args[0]) else "no"
        elif word == "value":
            answer = server.get(args[0]) or "-"
        elif word in ("lock", "await"):
            lock = server.lock(args[0], timeout=int(args[1]), sleep=0.05, blocking_timeout=10)
            answer = "yes" if lock.acquire(blocking=word == "await") else "no"
        elif word == "unlock":
            try:
                lock.release()
                answer = "yes"
            except redis.exceptions.LockError:
                answer = "no"
        elif word == "fill":
            server.eval(FILL, 0, args[0])
            answer = "yes"
        elif word == "scans":
            answer = str(server.info("commandstats").get("cmdstat_scan", {"calls": 0})["calls"])
        else:
            answer = "what?"
        print("answer " + answer, flush=True)


main()
