// One invariant: its last result with the offenders, and its history.
import {
  Badge,
  Copyable,
  Empty,
  ErrorBox,
  Facts,
  Head,
  List,
  Loading,
  Panel,
  Table,
  Time,
} from "../components";
import { duration, number, plural, shortId } from "../format";
import { useList, useLive } from "../live";
import { href } from "../router";
import { can } from "../session";
import type { ViewProps } from ".";
import type { Check, CheckResult } from "./check_types";
import { found, Outcome, RunNow, toneOfResult, useChecking } from "./InvariantOutcome";

function Definition({ check: c }: { check: Check }) {
  return (
    <Panel title="Definition">
      <Facts
        of={[
          ["Description", c.description],
          ["Severity", c.severity],
          ["Reads", c.connection ?? "the tables of an app"],
          ["Schedule", `${c.schedule} (${c.timezone})`],
          ["Next check", <Time at={c.next_at} />],
          ["Timeout", duration(c.timeout_ms)],
          ["Baseline", c.baseline > 0 && plural(c.baseline, "known offender")],
          ["File", c.path && <Copyable value={c.path} label="file" />],
        ]}
      />
    </Panel>
  );
}

function Runs({ ids }: { ids: string[] }) {
  return (
    <span class="inline">
      {ids.map((id) => (
        <a key={id} class="mono" href={href("/runs/:id", { id })}>
          {shortId(id)}
        </a>
      ))}
    </span>
  );
}

function LastResult({ result: r }: { result: CheckResult }) {
  return (
    <Panel
      title="Last result"
      tools={<Badge state={r.outcome.replace("_", " ")} tone={toneOfResult(r)} />}
    >
      <Facts
        of={[
          ["Checked", <Time at={r.started_at} />],
          ["Took", duration(r.duration_ms)],
          ["New offenders", number(r.new)],
          ["Known offenders", r.known > 0 && number(r.known)],
          ["Could not run", r.error],
          ["Runs that were active", r.runs.length > 0 && <Runs ids={r.runs} />],
          [
            "Obsolete in the baseline",
            r.not_needed.count > 0 &&
              `${r.not_needed.keys.join(", ")}${r.not_needed.count > r.not_needed.keys.length ? ", …" : ""}`,
          ],
        ]}
      />
    </Panel>
  );
}

function Offenders({ result: r }: { result: CheckResult }) {
  if (r.offenders.length === 0) return null;
  const shown =
    r.offenders.length < r.new
      ? `The first ${r.offenders.length} of ${number(r.new)} new offenders`
      : plural(r.new, "new offender");
  return (
    <Panel title={shown}>
      <Table
        label="Offenders"
        rows={r.offenders}
        rowKey={(o) => o.key}
        columns={[
          { title: "Key", cell: (o) => <Copyable value={o.key} label="key" /> },
          { title: "Row", cell: (o) => <span title={o.text}>{o.text}</span>, grow: true },
        ]}
      />
    </Panel>
  );
}

function History({ name }: { name: string }) {
  const live = useList<CheckResult>("/checks/results", { name }, 20);
  return (
    <Panel title="History">
      <List
        label="Results"
        live={live}
        rowKey={(r) => r.id}
        rowHref={(r) => href("/runs/:id", { id: r.id })}
        empty={
          <Empty title="Never checked">
            It runs on its schedule
            {can("operator", "check:run") ? ", or now with the button above" : ""}.
          </Empty>
        }
        columns={[
          { title: "Run", cell: (r) => <span class="mono">{shortId(r.id)}</span> },
          { title: "Result", cell: (r) => <Outcome of={r} /> },
          { title: "Checked", cell: (r) => <Time at={r.started_at} /> },
          {
            title: "Took",
            cell: (r) => duration(r.duration_ms),
            align: "right",
            wide: true,
          },
          { title: "Found", cell: (r) => found(r), grow: true },
        ]}
      />
    </Panel>
  );
}

export function Invariant({ names }: ViewProps) {
  const name = names["name"] ?? "";
  const { data, error, loading } = useLive<Check>(`/checks/${encodeURIComponent(name)}`);
  const checking = useChecking().has(name);
  return (
    <>
      <Head title={name} above={{ title: "Invariants", href: href("/invariants") }}>
        {data && !data.error && can("operator", "check:run") && (
          <RunNow names={[name]} label="Check now" checking={checking} />
        )}
      </Head>
      <ErrorBox error={error} />
      {loading && <Loading />}
      {data && (
        <>
          {data.error && (
            <div class="error-box" role="alert">
              <p>
                <strong>Invalid definition:</strong> {data.error}
              </p>
            </div>
          )}
          <div class="columns">
            <Definition check={data} />
            {data.last && <LastResult result={data.last} />}
          </div>
          {data.last && <Offenders result={data.last} />}
        </>
      )}
      {data && <History name={name} />}
    </>
  );
}
