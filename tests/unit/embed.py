#!/usr/bin/env python3
"""embed.py TOOL: how tools/embed handles markers, parts, names and seeded bugs, and what it
refuses. All in one process: starting Python for each case would cost more than the cases."""
import contextlib
import importlib.machinery
import importlib.util
import io
import os
import sys
import tempfile

loader = importlib.machinery.SourceFileLoader("embed", sys.argv[1])
sys.dont_write_bytecode = True
embed = importlib.util.module_from_spec(importlib.util.spec_from_loader("embed", loader))
loader.exec_module(embed)


def write(name, text):
    with open(name, "w", encoding="utf-8") as file:
        file.write(text)


def run(args):
    """What it prints after its first line, and its error."""
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            embed.main(args.split())
    except SystemExit as end:
        return out.getvalue(), end.code
    return out.getvalue().partition("\n")[2], None


def same(args, want):
    got, error = run(args)
    if error or got != want:
        sys.exit(f"embed {args}\n{error or got}")


def refused(args, want):
    error = run(args)[1]
    if error != want:
        sys.exit(f"embed {args}\nsaid: {error}\nwant: {want}")


def results():
    write("names", "STATUS_OK 0\nJOB_READY 2\n")

    # A file without markers is one constant, kept as it is but for its comments.
    write("plain.sql", '-- all of it\nSELECT "\\";\n  -- more\n\n')
    plain = '    "SELECT \\"\\\\\\";\\n"\n    "\\n"\n    "";\n'
    same("sql plain.sql", "static const char sql_plain[] =\n" + plain)

    # Markers, a part that holds a name, and the names that PostgreSQL's engine fills in later.
    write("job.sql", """-- job: everything about jobs.

-- part: columns
seq, state = @JOB_READY@,
queue

-- name: job_get
-- A job.
SELECT @columns@ FROM @schema.job;

-- name: job_any
-- mutant any_job: SELECT 1;
-- mutant other_bug: SELECT 2;
SELECT @STATUS_OK@;
""")
    job = """static const char sql_job_get[] =
    "SELECT seq, state = 2,\\n"
    "queue FROM @schema.job;\\n"
    "";
static const char sql_job_any[] =
    "SELECT %d;\\n"
    "";
"""
    same("--names names sql job.sql", job % 0)
    same("--names names --mutant any_job sql job.sql", job % 1)
    same("--names names --mutant other_bug sql job.sql", job % 2)
    same("--list job.sql plain.sql", "X(job_get)\nX(job_any)\nX(plain)\n")

    # What two engines write differently, also in what a part holds.
    same("--names names --replace @schema.=il_ --replace seq=no sql job.sql",
         (job % 0).replace("@schema.", "il_").replace("seq", "no"))

    # A statement of a seeded bug.
    write("bug.sql", "-- name: a\n1\n\n-- name: b if mutant bug\n2\n\n-- name: c\n3\n")
    a, b, c = (f'static const char sql_{x}[] =\n    "{n}\\n"\n    "";\n' for x, n in ("a1", "b2", "c3"))
    same("sql bug.sql", a + c)
    same("--mutant other sql bug.sql", a + c)
    same("--mutant bug sql bug.sql", a + b + c)

    # Several files as one; a part serves all of them.
    write("parts.sql", "-- part: columns\na, b\n")
    write("more.sql", "SELECT @columns@;\n")
    same("--join all sql more.sql parts.sql plain.sql",
         'static const char sql_all[] =\n    "SELECT a, b;\\n"\n' + plain)


def errors():
    refused("sql job.sql", "job.sql:4: unknown name @JOB_READY@")
    refused("sql more.sql", "more.sql:1: unknown part @columns@")
    refused("sql parts.sql plain.sql", "parts.sql:1: nobody uses the part columns")
    write("again.sql", "-- name: plain\n1\n")
    refused("sql again.sql plain.sql", "plain.sql: name plain exists already: again.sql:1")
    misplaced = "a mutant stands directly above the line that it replaces"
    for text, want in (
            ("-- part: a\n@b@\n-- part: b\n@a@\n-- name: c\n@a@\n", "4: part a inserts itself"),
            ("-- name: a\n1\n-- name: a\n2\n", "3: name a exists already: bad.sql:1"),
            ("-- name: Big\n1\n",
             "1: 'Big' is not a name: want lower-case letters, digits and _"),
            ("-- name: a\n\n-- name: b\n1\n", "1: a is empty"),
            ("1\n-- name: a\n2\n", "1: text before the first marker"),
            ("-- mutant bug: 1\n-- a comment\n2\n", "1: " + misplaced),
            ("1\n-- mutant bug: 2\n", "2: " + misplaced)):
        write("bad.sql", text)
        refused("sql bad.sql", "bad.sql:" + want)
    write("bad", "OK\n")
    refused("--names bad sql plain.sql", "bad:1: want: NAME NUMBER")
    write("bad", "OK 0\nOK 1\n")
    refused("--names bad sql plain.sql", "bad:2: OK has another number already")


with tempfile.TemporaryDirectory() as work:
    os.chdir(work)
    results()
    errors()
    os.chdir("/")
