"""A transaction left open does not block others. Drivers begin one implicitly, as psycopg does
here. A connection that has to wait for a lock gets an error (pgtest.Test.connect)."""
import pgtest

psycopg = pgtest.need_psycopg()

PUSH = "SELECT job, status FROM interlock.push(%s, %s, id => %s, priority => %s, group_key => %s)"
CLAIM = "SELECT job, token, priority FROM interlock.claim(%s, %s, n => %s, lease => interval '10 min')"
MEBI = 1 << 20


def store(case):
    case.interlock("migrate")
    return case.connect(autocommit=True)


def push(db, queue, ids, priority=0, group=None, payload="x"):
    for job in ids:
        assert db.execute(PUSH, (queue, payload, job, priority, group)).fetchone() == (job, "OK")


def claim(db, queue, worker, n=1):
    return db.execute(CLAIM, (queue, worker, n)).fetchall()


def names(rows):
    return [row[0] for row in rows]


def others_go_on(case, queue, ids, n_free):
    """Everything that others do in this queue, by SQL and through the library; n_free jobs can be had."""
    db = case.connect(autocommit=True)
    rows = claim(db, queue, "other", n_free + 5)
    assert len(rows) == n_free and not set(names(rows)) & set(ids), (rows, ids)
    push(db, queue, [f"{queue}-new"])
    for job in ids:  # whatever became of it, it exists
        assert db.execute(PUSH, (queue, "x", job, 0, None)).fetchone()[1] in ("OK", "MISMATCH")
    (job, token, _), = claim(db, queue, "other")
    assert job == f"{queue}-new"
    assert db.execute("SELECT alive FROM interlock.heartbeat(%s, %s)", (job, token)).fetchone() == (True,)
    for stale in ids:
        assert db.execute("SELECT alive FROM interlock.heartbeat(%s, 1)", (stale,)).fetchone() == (False,)
        try:
            db.execute("SELECT interlock.finish(%s, 1)", (stale,))
            raise pgtest.Failure("a job was finished with a token that it never had")
        except psycopg.Error as error:
            assert error.diag.sqlstate == "IL001", error
    assert db.execute("SELECT interlock.finish(%s, %s)", (job, token)).fetchone() == (True,)
    case.interlock("queue", "push", queue, "--id", f"{queue}-library", "x")
    assert queue in case.interlock("queue", "stats", queue)
    assert f"{queue}-library" in case.interlock("queue", "list", queue)
    assert names(claim(db, queue, "other")) == [f"{queue}-library"]
    db.close()


def a_claim(case):
    db = store(case)
    push(db, "q", ["a", "b", "c", "d"])
    holder = case.connect()
    mine = names(claim(holder, "q", "w", 2))
    assert mine == ["a", "b"]
    # The same worker's name, in another process.
    other = case.connect()
    assert names(claim(other, "q", "w")) == ["c"]
    others_go_on(case, "q", ["a", "b", "c"], 1)
    holder.rollback()
    assert names(claim(db, "q", "w", 9)) == ["a", "b"]
    other.commit()


def an_empty_claim(case):
    """Nothing to be had, and the transaction left open all the same."""
    db = store(case)
    case.interlock("queue", "set", "q", "--rate", "2/1h")
    holder = case.connect()
    assert claim(holder, "q", "w", 9) == []
    push(db, "q", ["a", "b", "c"])
    assert names(claim(db, "q", "v", 9)) == ["a", "b"]


def a_claim_of_an_optimistic_queue(case):
    db = store(case)
    case.interlock("queue", "set", "q", "--strategy", "optimistic")
    push(db, "q", ["a", "b", "c"])
    holder = case.connect()
    assert names(claim(holder, "q", "w")) == ["a"]
    others_go_on(case, "q", ["a"], 2)


def a_claim_with_groups(case):
    db = store(case)
    case.interlock("queue", "set", "q", "--group-limit", "1")
    for group in "fgh":
        push(db, "q", [f"{group}1", f"{group}2"], group=group)
    holder = case.connect()
    assert names(claim(holder, "q", "w")) == ["f1"]
    others_go_on(case, "q", ["f1", "f2"], 2)
    # f is full as long as nobody knows what becomes of f1.
    assert claim(db, "q", "v", 9) == []
    holder.rollback()
    assert names(claim(db, "q", "v", 9)) == ["f1"]
    # The next one of a group, while the claim that has moved it up is open.
    running = db.execute("SELECT l.token FROM interlock.job b JOIN interlock.job_live l USING (seq) WHERE b.id = 'f1'").fetchone()
    assert db.execute("SELECT interlock.finish('f1', %s)", running).fetchone() == (True,)
    holder = case.connect()
    assert names(claim(holder, "q", "w")) == ["f2"]
    push(db, "q", ["f3", "i1"], group="f")
    assert claim(db, "q", "v", 9) == []
    push(db, "q", ["j1"], group="j")
    assert names(claim(db, "q", "v", 9)) == ["j1"]
    holder.commit()
    assert claim(db, "q", "v", 9) == []


def a_claim_with_a_rate(case):
    db = store(case)
    case.interlock("queue", "set", "q", "--rate", "5/1h")
    push(db, "q", ["a", "b", "c", "d", "e", "f"])
    holder = case.connect()
    assert names(claim(holder, "q", "w", 2)) == ["a", "b"]
    assert names(claim(db, "q", "v", 9)) == ["c", "d", "e"]  # and what the open one uses is used
    holder.commit()
    assert claim(db, "q", "v", 9) == []


def a_claim_that_found_work_to_do(case):
    """Due jobs, and those of a dead worker: an open claim sees to no more of them than it takes."""
    db = store(case)
    for job, priority in (("late", 5), ("soon", -5), ("then", 0)):
        db.execute("SELECT interlock.push('q', id => %s, priority => %s, delay => interval '2 s')", (job, priority))
    while db.execute("SELECT count(*) FROM interlock.job_live WHERE ord > interlock.clock_ms()").fetchone() != (0,):
        pass
    holder = case.connect()
    assert names(claim(holder, "q", "w")) == ["soon"]
    others_go_on(case, "q", ["soon"], 2)
    holder.rollback()
    assert names(claim(db, "q", "w", 9)) == ["soon"]
    push(db, "dead", ["p", "q"])
    first = db.execute("SELECT job FROM interlock.claim('dead', 'w', n => 2, lease => interval '1 s')").fetchall()
    assert names(first) == ["p", "q"]
    while True:
        taken = names(claim(holder, "dead", "w"))
        if taken:
            break
        holder.rollback()
    others_go_on(case, "dead", taken, 1)


def a_push_a_finish_and_a_fence(case):
    db = store(case)
    push(db, "q", ["a", "b"])
    holder = case.connect()
    (job, token, _), = claim(db, "q", "w")
    fence = db.execute("SELECT fence FROM interlock.acquire('k', 'h')").fetchone()[0]
    holder.execute("SELECT interlock.check_fence('k', %s)", (fence,))
    holder.execute("SELECT interlock.push('q', 'x', id => 'mine')")
    holder.execute("SELECT interlock.push('q', 'x', id => 'unique', unique_key => 'u')")
    holder.execute("SELECT interlock.finish(%s, %s)", (job, token))
    others_go_on(case, "q", [], 1)
    assert db.execute("SELECT renewed FROM interlock.renew('k', 'h', %s)", (fence,)).fetchone() == (True,)
    assert db.execute("SELECT granted, status FROM interlock.acquire('k', 'i')").fetchone() == (False, "LOCK_HELD")
    assert db.execute("SELECT interlock.sweep()").fetchone() is not None


KEYED = "SELECT status FROM interlock.push('q', 'x', id => %s, unique_key => 'u', unique_for => '1 h')"


def end_all(db):
    """All READY jobs end, the period of their keys is over, and they may be purged."""
    for job, token, _ in claim(db, "q", "w", 9):
        db.execute("SELECT interlock.finish(%s, %s)", (job, token))
    db.execute("UPDATE interlock.job SET unique_until_ms = 1")
    db.execute("UPDATE interlock.job_done SET purge_at_ms = 1 + seq")


def there(db):
    return names(db.execute("SELECT id FROM interlock.job ORDER BY id").fetchall())


def a_key_that_is_taken_over(case):
    """Until the transaction ends that takes a unique key from an ended job, nobody knows whose key it
    is: purges leave that job alone, and go on."""
    db = store(case)
    assert db.execute(KEYED, ("first",)).fetchone() == ("OK",)
    push(db, "q", ["behind"])
    end_all(db)
    holder = case.connect()
    assert holder.execute(KEYED, ("second",)).fetchone() == ("OK",)
    assert db.execute("SELECT interlock.sweep()").fetchone() == (False,)
    assert there(db) == ["first"]
    assert case.interlock("queue", "purge", "q", "--state", "completed") == "0 jobs deleted\n"
    holder.rollback()
    db.execute("SELECT interlock.sweep()")
    assert there(db) == []
    assert db.execute("SELECT count(*) FROM interlock.job_unique").fetchone() == (0,)

    for job, purge in (("third", lambda: db.execute("SELECT interlock.sweep()")),
                       ("fifth", lambda: case.interlock("queue", "purge", "q", "--state", "completed"))):
        assert db.execute(KEYED, (job,)).fetchone() == ("OK",)
        end_all(db)
        assert holder.execute(KEYED, ("next",)).fetchone() == ("OK",)
        purge()
        holder.commit()
        purge()
        assert there(db) == ["next"]
        assert db.execute(KEYED, ("another",)).fetchone() == ("DUPLICATE",)
        end_all(db)
        purge()
        assert there(db) == []


def a_purge(case):
    """It deletes what nobody has locked."""
    db = store(case)
    push(db, "q", ["a", "b", "c"])
    holder = case.connect()
    assert names(claim(holder, "q", "w")) == ["a"]
    assert case.interlock("queue", "purge", "q", "--state", "ready") == "2 jobs deleted\n"
    holder.rollback()
    (job, token, _), = claim(db, "q", "w", 9)
    assert job == "a"
    db.execute("SELECT interlock.fail(%s, %s, final => true)", (job, token))
    holder.execute("SELECT interlock.retry('a')")
    assert case.interlock("queue", "purge", "q", "--state", "failed") == "0 jobs deleted\n"
    holder.rollback()
    assert case.interlock("queue", "purge", "q", "--state", "failed") == "1 job deleted\n"
    assert there(db) == []


def a_sweep(case):
    """All parts of it, the last one too."""
    db = store(case)
    fence, = db.execute("SELECT fence FROM interlock.acquire('k', 'h')").fetchone()
    db.execute("SELECT interlock.break_lease('k', %s, 'stuck', at_once => true)", (fence,))
    assert db.execute("UPDATE interlock.history SET last_ms = 1").rowcount == 1
    assert db.execute("SELECT interlock.sweep()").fetchone() == (False,)
    assert db.execute("SELECT count(*) FROM interlock.history").fetchone() == (0,)


def limits_cannot_change_meanwhile(case):
    """And whoever tries that holds up nobody either."""
    db = store(case)
    push(db, "q", ["a", "b"])
    holder = case.connect()
    assert names(claim(holder, "q", "w")) == ["a"]
    for setting in (("--group-limit", "1"), ("--rate", "1/1h")):
        assert "still open" in case.interlock("queue", "set", "q", *setting, status=69)
    others_go_on(case, "q", ["a"], 1)
    holder.commit()
    case.interlock("queue", "set", "q", "--group-limit", "1", "--rate", "1/1h")


def in_order(case):
    db = store(case)
    for job, priority in (("c", 3), ("a", 1), ("b", 2), ("z", 9), ("first", -1)):
        push(db, "q", [job], priority)
    rows = claim(db, "q", "w", 4)
    assert names(rows) == ["first", "a", "b", "c"], rows
    assert [row[1] for row in rows] == sorted(row[1] for row in rows)


def no_more_than_fits(case):
    """8 MiB at most, a KiB of it for each job, but always a job; the others are not touched."""
    db = store(case)
    push(db, "q", [f"j{i:02}" for i in range(12)], payload="x" * (MEBI - 1024))
    holder = case.connect()
    assert names(claim(holder, "q", "w", 100)) == [f"j{i:02}" for i in range(8)]
    assert names(claim(db, "q", "v", 100)) == [f"j{i:02}" for i in range(8, 12)]
    holder.rollback()
    assert len(claim(db, "q", "v", 100)) == 8
    assert db.execute("SELECT max(attempt) FROM interlock.job_live").fetchone() == (1,)


pgtest.run([a_claim, an_empty_claim, a_claim_of_an_optimistic_queue, a_claim_with_groups, a_claim_with_a_rate,
            a_claim_that_found_work_to_do, a_push_a_finish_and_a_fence,
            a_key_that_is_taken_over, a_purge, a_sweep, limits_cannot_change_meanwhile, in_order,
            no_more_than_fits])
