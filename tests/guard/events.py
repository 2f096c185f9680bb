#!/usr/bin/env python3
"""events.py PROGRAM: does every line that PROGRAM (events.c) prints fit docs/guard-event.schema.json?
It is checked with the validator of the HTTP tests, and with python3-jsonschema where that is installed."""
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "http"))
import schema as validator  # noqa: E402

try:
    import jsonschema
except ImportError:
    jsonschema = None


def no_repeats(pairs):
    names = [name for name, _ in pairs]
    if len(names) != len(set(names)):
        sys.exit(f"events.py: a name is repeated: {names}")
    return dict(pairs)


def main():
    with open(os.path.join(ROOT, "docs", "guard-event.schema.json"), encoding="utf-8") as file:
        schema = json.load(file)
    if jsonschema:
        jsonschema.Draft202012Validator.check_schema(schema)
    ours = {name: value for name, value in schema.items() if name not in ("$schema", "title")}
    text = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, check=True).stdout.decode("utf-8")
    lines = [json.loads(line, object_pairs_hook=no_repeats) for line in text.splitlines()]
    for line in lines:
        validator.Document(ours).check(ours, line, "line", strict=True)
        if jsonschema:
            jsonschema.validate(line, schema, jsonschema.Draft202012Validator)
    # the validator refuses what does not fit
    for name in schema["properties"]:
        for bad in ({key: value for key, value in lines[0].items() if key != name}, {**lines[0], name: []}):
            try:
                validator.Document(ours).check(ours, bad, "line", strict=True)
            except validator.Wrong:
                continue
            sys.exit(f"events.py: fits with a wrong {name}: {bad}")
    assert {line["outcome"] for line in lines} == set(schema["properties"]["outcome"]["enum"])
    assert lines[0]["event"] == "booking.lock_acquired" and lines[0]["query_count"] >= 1, lines[0]
    assert lines[0]["caller"] == 'create "quoted" \u00e9\u0001\n', lines[0]
    assert lines[0]["tags"] == {
        "user_id": 7, "share": 0.25, "nan": None, '"\n\ufffd': "\t\ufffd\U0001f600",
        "skills_updated": ["dribbling", {"x": None}], "bad_json": '{"x":', "blob": "2 bytes"}, lines[0]
    assert lines[2]["event"] == "lock_acquired" and lines[2]["pipeline"] == "" and lines[2]["outcome"] == "rolled_back"
    assert lines[3]["outcome"] == "refused" and lines[4]["outcome"] == "violation", lines[3:5]
    assert "tests/guard/events.c:" in lines[0]["place"], lines[0]
    assert all(len(line["caller"]) <= 256 and "\ufffd" not in line["caller"] for line in lines)
    assert len(lines[-1]["caller"].encode()) in (255, 256), lines[-1]
    print(f"{len(lines)} lines fit" + (", also with jsonschema" if jsonschema else ""))


main()
