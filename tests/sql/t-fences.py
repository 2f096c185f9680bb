"""A database restored from a backup issues no fence twice, and none below those issued after the
backup."""
import os
import threading

import pgtest

psycopg = pgtest.need_psycopg()

DRAW = "SELECT unnest(fences_draw(%s))"


def program(name):
    return pgtest.program(name) or name


def drawing(case, fences, stop, key):
    """Grants and claims on a connection of its own, until told to stop; errors are those of a restore."""
    db = case.connect(autocommit=True)
    n = 0
    while not stop.is_set():
        n += 1
        try:
            # A key of each grant's own: the backup may have one that is held.
            fence, = db.execute("SELECT fence FROM interlock.acquire(%s, %s)", (f"{key}-{n}", key)).fetchone()
            db.execute("SELECT interlock.release(%s, %s, %s)", (f"{key}-{n}", key, fence))
            fences.append(fence)
            db.execute("SELECT interlock.push('q', 'x')")
            fences += [token for token, in db.execute("SELECT token FROM interlock.claim('q', %s, n => 5)", (key,)).fetchall()]
        except psycopg.Error:
            if db.closed:
                return
    db.close()


class Load:
    """Several that draw."""

    def __init__(self, case, name):
        self.fences = [[] for _ in range(3)]
        self.stop = threading.Event()
        self.threads = [threading.Thread(target=drawing, args=(case, fences, self.stop, f"{name}-{i}"))
                        for i, fences in enumerate(self.fences)]
        for thread in self.threads:
            thread.start()

    def until(self, n):
        """Until each has n more."""
        wanted = [len(fences) + n for fences in self.fences]
        while any(len(fences) < k for fences, k in zip(self.fences, wanted)) and all(t.is_alive() for t in self.threads):
            self.stop.wait(0.01)

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join()
        return [fence for fences in self.fences for fence in fences]


def dump(case):
    path = os.path.join(case.home, "dump.sql")
    case.run(program("pg_dump"), "-f", path)
    return path


def restored_into_the_same_database(case):
    case.interlock("migrate")
    load = Load(case, "k")
    load.until(50)
    backup = dump(case)
    load.until(200)
    # In one transaction. Who uses the tables meanwhile waits, or one of both is refused because of a deadlock.
    while "deadlock" in case.run("psql", "-X", "-q", "-1", "-v", "ON_ERROR_STOP=1", "-c", "SET client_min_messages = error",
                                 "-c", "DROP SCHEMA interlock CASCADE", "-f", backup, status=None):
        pass
    with case.connect(autocommit=True) as db:
        assert db.execute("SELECT count(*) FROM interlock.job_worker").fetchone() is not None
    before = [max(fences) for fences in load.fences]  # all were given before, or after the restore
    load.until(50)
    for fences, newest in zip(load.fences, before):
        assert all(a < b for a, b in zip(fences, fences[1:])), "the fences of one caller do not grow"
        assert fences[-1] > newest
    given = load.end()
    assert len(given) == len(set(given)), "a number was given twice"


def restored_into_another_database(case):
    case.interlock("migrate")
    load = Load(case, "k")
    load.until(50)
    backup = dump(case)
    load.until(300)
    given = load.end()
    case.new_database("other")
    case.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", "other", "-f", backup)
    with case.connect(database="other", autocommit=True) as db:
        assert db.execute("SELECT last_value FROM interlock.fence_seq").fetchone()[0] < max(given)
        first, = db.execute("SELECT fence FROM interlock.acquire('k', 'h')").fetchone()
        assert first > max(given), (first, max(given))


def inside(case, **options):
    """A connection that can call what the functions call."""
    db = case.connect(**options)
    db.execute("SET search_path = interlock")
    if not options:
        db.commit()
    return db


def raised_and_drawn_at_once(case):
    """Many sessions draw, and nearly all of them find the sequence behind: this clock runs too fast."""
    case.interlock("migrate")
    with inside(case, autocommit=True) as db:
        db.execute("""CREATE OR REPLACE FUNCTION clock_us() RETURNS bigint LANGUAGE sql VOLATILE AS $$
                          SELECT 1700000000000000 + (date_part('epoch', clock_timestamp() - '2026-01-01'::timestamptz) * 20000000)::bigint $$""")
    drawn = [[] for _ in range(8)]

    def draw(numbers):
        db = inside(case, autocommit=True)
        for n in range(300):
            numbers += [fence for fence, in db.execute(DRAW, (1 + n % 7,)).fetchall()]
        db.close()

    threads = [threading.Thread(target=draw, args=(numbers,)) for numbers in drawn]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    given = [fence for numbers in drawn for fence in numbers]
    assert len(given) == 8 * sum(1 + n % 7 for n in range(300))
    assert len(given) == len(set(given)), "a number was given twice"
    for numbers in drawn:
        assert numbers == sorted(numbers)


def a_raise_waits_for_draws(case):
    """Nobody draws while the sequence is raised: setval() would take it back."""
    case.interlock("migrate")
    drawer = inside(case)
    drawer.execute("SELECT pg_advisory_xact_lock_shared(mutex(7, '', 'fences'))")  # as a draw does
    raiser = inside(case, autocommit=True)
    raiser.execute("SELECT setval('fence_seq', 1)")
    raiser.execute("SET lock_timeout = '100ms'")
    try:
        raiser.execute(DRAW, (1,))
        raise pgtest.Failure("the sequence was raised while somebody drew from it")
    except psycopg.errors.LockNotAvailable:
        pass
    drawer.rollback()
    # And a draw in a transaction that stays open keeps nobody from it.
    drawer.execute(DRAW, (3,))
    first = raiser.execute("SELECT setval('fence_seq', 1)").fetchone()
    assert first == (1,)
    assert raiser.execute(DRAW, (1,)).fetchone()[0] > 1000000


def clocks_that_are_wrong(case):
    """Set back: the numbers go on from where they are. Beyond 2^53: ignored."""
    case.interlock("migrate")
    db = inside(case, autocommit=True)
    ahead = db.execute("SELECT setval('fence_seq', clock_us() + 3600000000)").fetchone()[0]
    assert [n for n, in db.execute(DRAW, (3,)).fetchall()] == [ahead + 1, ahead + 2, ahead + 3]
    db.execute("""CREATE OR REPLACE FUNCTION clock_us() RETURNS bigint LANGUAGE sql VOLATILE
                  AS 'SELECT 9007199254740992'""")
    assert db.execute(DRAW, (1,)).fetchone()[0] == ahead + 4


pgtest.run([restored_into_the_same_database, restored_into_another_database, raised_and_drawn_at_once,
            a_raise_waits_for_draws, clocks_that_are_wrong])
