"""push in transactions with an old snapshot: it works, and conflicts that the snapshot cannot show
are a serialization failure (40001), never a second job. Calls that cannot work there are
refused."""
import pgtest

psycopg = pgtest.need_psycopg()

LEVELS = (psycopg.IsolationLevel.REPEATABLE_READ, psycopg.IsolationLevel.SERIALIZABLE)
PUSH = """SELECT status FROM interlock.push('q', 'x', id => %s, unique_key => %s, parent => %s,
                                            group_key => %s)"""

PERIOD = "SELECT interlock.push('q', 'x', id => %s, unique_key => %s, unique_for => %s::interval)"


def push(db, job, unique=None, parent=None, group=None):
    return db.execute(PUSH, (job, unique, parent, group)).fetchone()[0]


def begin(case, level):
    """A transaction whose snapshot is taken now."""
    db = case.connect()
    db.isolation_level = level
    db.execute("SELECT 1 FROM interlock.state")
    return db


def fails(sqlstate, call, *args, **named):
    try:
        call(*args, **named)
    except psycopg.Error as error:
        assert error.diag.sqlstate == sqlstate, error
        return
    raise pgtest.Failure(f"there was no {sqlstate}")


def store(case):
    case.interlock("migrate")
    return case.connect(autocommit=True)


def jobs(db, where="true"):
    return db.execute(f"SELECT count(*) FROM interlock.job WHERE {where}").fetchone()[0]


def it_works(case):
    db = store(case)
    for level in LEVELS:
        first = begin(case, level)
        name = level.name
        assert push(first, f"{name}-new-queue") == "OK"
        assert push(first, f"{name}-again") == "OK"
        assert push(first, f"{name}-again") == "OK"
        assert push(first, f"{name}-unique", unique=f"{name}-u") == "OK"
        assert push(first, f"{name}-other", unique=f"{name}-u") == "DUPLICATE"
        first.commit()
        assert jobs(db, f"id LIKE '{name}-%'") == 3
        undone = begin(case, level)
        assert push(undone, f"{name}-undone") == "OK"
        undone.rollback()
        assert jobs(db, f"id = '{name}-undone'") == 0
        # Beside others that do the same to other jobs, in the same queue.
        one, two = begin(case, level), begin(case, level)
        assert push(one, f"{name}-one") == "OK"
        push(db, f"{name}-between")
        assert push(two, f"{name}-two") == "OK"
        one.commit()
        two.commit()


def what_it_cannot_see(case):
    db = store(case)
    for level in LEVELS:
        name = level.name
        late = begin(case, level)
        push(db, f"{name}-id")
        fails("40001", push, late, f"{name}-id")
        late.rollback()
        assert push(late, f"{name}-id") == "OK"  # tried again, as 40001 asks for
        late.rollback()

        late = begin(case, level)
        push(db, f"{name}-keeper", unique=f"{name}-key")
        fails("40001", push, late, f"{name}-second", unique=f"{name}-key")
        late.rollback()
        assert push(late, f"{name}-second", unique=f"{name}-key") == "DUPLICATE"
        late.rollback()
        assert jobs(db, f"unique_key = '{name}-key'") == 1

    late = begin(case, LEVELS[0])
    db.execute("SELECT interlock.push('new', 'x', id => 'new-1')")
    fails("40001", late.execute, "SELECT interlock.push('new', 'x', id => 'new-2')")


def a_key_that_was_given_back(case):
    """The snapshot shows a keeper that has ended and whose time is over; it was retried since."""
    db = store(case)
    db.execute("SELECT interlock.push('q', 'x', id => 'k', unique_key => 'u', unique_for => '1 s', max_attempts => 1)")
    job, token = db.execute("SELECT job, token FROM interlock.claim('q', 'w')").fetchone()
    db.execute("SELECT interlock.fail(%s, %s)", (job, token))
    db.execute("UPDATE interlock.job SET unique_until_ms = 1 WHERE id = 'k'")
    late = begin(case, LEVELS[0])
    assert db.execute("SELECT status FROM interlock.retry('k')").fetchone() == ("OK",)
    fails("40001", push, late, "second", unique="u")


def take(db, job):
    """Claim the only job that is due."""
    found = db.execute("SELECT job, token FROM interlock.claim('q', 'w')").fetchone()
    assert found and found[0] == job, found
    return found


def finish(db, job):
    db.execute("SELECT interlock.finish(%s, %s)", take(db, job))


def a_keeper_that_has_ended(case):
    """DUPLICATE would say that a job does the work which nobody will do."""
    db = store(case)
    for level in LEVELS:
        keeper, key, second = (f"{level.name}-{name}" for name in ("keeper", "key", "second"))
        push(db, keeper, unique=key)
        late = begin(case, level)
        finish(db, keeper)
        fails("40001", push, late, second, unique=key)
        late.rollback()
        assert push(late, second, unique=key) == "OK"
        late.commit()
        finish(db, second)


def a_keeper_at_work(case):
    """It keeps the key, and whoever works on it does not notice those who ask."""
    db = store(case)
    for level in LEVELS:
        keeper, key = f"{level.name}-keeper", f"{level.name}-key"
        push(db, keeper, unique=key)
        late = begin(case, level)
        assert push(late, "second", unique=key) == "DUPLICATE"
        token = take(db, keeper)  # a claim passes over rows that are locked
        assert push(late, "second", unique=key) == "DUPLICATE"
        open_end = case.connect()
        open_end.execute("SELECT interlock.finish(%s, %s)", token)
        late.execute("SET LOCAL lock_timeout = '1 min'")  # it would wait for itself
        assert push(late, "second", unique=key) == "DUPLICATE"
        open_end.commit()
        fails("40001", push, late, "second", unique=key)
        late.rollback()


def a_keeper_by_its_period(case):
    db = store(case)
    for level in LEVELS:
        # Ended within its period, which goes on: it keeps the key until somebody purges it.
        keeper, key = f"{level.name}-keeper", f"{level.name}-key"
        db.execute(PERIOD, (keeper, key, "1 h"))
        late, later = begin(case, level), begin(case, level)
        finish(db, keeper)
        assert push(late, "second", unique=key) == "DUPLICATE"
        late.rollback()
        late = begin(case, level)
        assert push(late, "second", unique=key) == "DUPLICATE"
        case.interlock("queue", "purge", "--state", "completed", "q")
        for old in (late, later):
            fails("40001", push, old, "second", unique=key)
            old.rollback()

        # Ended within its period, which is over since: the end has left the key's row as it was.
        keeper, key = f"{level.name}-short", f"{level.name}-short-key"
        db.execute(PERIOD, (keeper, key, "1 s"))
        late = begin(case, level)
        finish(db, keeper)
        over = "SELECT unique_until_ms <= interlock.clock_ms() FROM interlock.job WHERE id = %s"
        while not db.execute(over, (keeper,)).fetchone()[0]:
            db.execute("SELECT pg_sleep(0.02)")
        fails("40001", push, late, "second", unique=key)
        late.rollback()


def an_id_that_was_purged(case):
    db = store(case)
    for level in LEVELS:
        for unique in (None, "key"):
            job = f"{level.name}-{unique}"
            push(db, job, unique=unique)
            late = begin(case, level)
            case.interlock("queue", "purge", "--state", "ready", "q")
            if unique:  # else the insert finds out
                fails("40001", push, late, job, unique=unique)
                late.rollback()
            assert push(late, job, unique=unique) == "OK"
            late.commit()
            assert jobs(db, f"id = '{job}'") == 1
            finish(db, job)


def children(case):
    db = store(case)
    for n, level in enumerate(LEVELS):
        parent = f"p{n}"
        db.execute("SELECT interlock.push('q', 'x', id => %s, children => 1)", (parent,))
        late = begin(case, level)
        assert push(db, f"c{n}", parent=parent) == "OK"
        fails("40001", push, late, f"d{n}", parent=parent)
        late.rollback()
        assert push(late, f"d{n}", parent=parent) == "LIMIT_EXCEEDED"
        late.rollback()

        db.execute("SELECT interlock.push('q', 'x', id => %s, children => 0)", ("s" + parent,))
        late = begin(case, level)
        db.execute("SELECT interlock.seal(%s)", ("s" + parent,))
        fails("40001", push, late, f"e{n}", parent="s" + parent)
        late.rollback()


def settings(case):
    """A limit that is set meanwhile holds for the job as well."""
    db = store(case)
    case.interlock("queue", "push", "q", "x")
    late = begin(case, LEVELS[0])
    case.interlock("queue", "set", "q", "--group-limit", "1")
    fails("40001", push, late, "grouped", group="g")
    late.rollback()
    assert push(late, "grouped", group="g") == "OK"
    assert "paused" in case.interlock("queue", "pause", "q")  # nobody waits for it
    late.commit()


def the_others(case):
    store(case)
    for level in LEVELS:
        for call in ("acquire('k', 'h')", "claim('q', 'w')", "finish('j', 1)", "cancel('j')", "sweep()"):
            fails("25000", begin(case, level).execute, f"SELECT interlock.{call}")


def our_own_connections(case):
    """The library begins its own, whatever the default of the database or role is."""
    db = store(case)
    db.execute("ALTER DATABASE app SET default_transaction_isolation = 'serializable'")
    case.interlock("queue", "push", "q", "--id", "a", "x")
    case.interlock("run", "key", "--", "true")
    assert "a" in case.interlock("queue", "list", "q")
    case.interlock("queue", "push", "q", "--id", "a", "other", status=65)
    assert jobs(case.connect(autocommit=True), "id = 'a'") == 1


pgtest.run([it_works, what_it_cannot_see, a_key_that_was_given_back, a_keeper_that_has_ended,
            a_keeper_at_work, a_keeper_by_its_period, an_id_that_was_purged, children, settings,
            the_others, our_own_connections])
