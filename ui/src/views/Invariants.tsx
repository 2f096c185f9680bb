// All invariants of the tenant, the broken ones first.
import {
  Badge,
  Command,
  Empty,
  ErrorBox,
  Filter,
  Head,
  Loading,
  Select,
  Table,
  Time,
} from "../components";
import { duration, plural } from "../format";
import { useLoad } from "../live";
import { href, useParam } from "../router";
import { can } from "../session";
import type { Check } from "./check_types";
import {
  found,
  isProblem,
  Outcome,
  readChecks,
  RunNow,
  urgency,
  useChecking,
} from "./InvariantOutcome";

const SHOW = [
  { value: "", title: "all" },
  { value: "problems", title: "problems" },
];

function wanted(checks: Check[], show: string, text: string): Check[] {
  const lower = text.toLowerCase();
  return checks
    .filter((c) => show !== "problems" || isProblem(c))
    .filter((c) => `${c.name} ${c.description}`.toLowerCase().includes(lower))
    .sort((a, b) => urgency(a) - urgency(b) || (a.name < b.name ? -1 : 1));
}

const NoChecks = () => (
  <Empty title="No invariants">
    <p>
      An invariant is a query that must find nothing. Put a YAML file into a folder per tenant, and
      start the server with it:
    </p>
    <Command>
      {`- name: negative_balance
  description: Accounts below zero
  connection: app
  sql: SELECT id, owner FROM account WHERE balance < 0 ORDER BY id

interlock serve --checks checks`}
    </Command>
  </Empty>
);

function Summary({ checks, more }: { checks: Check[]; more: boolean }) {
  const problems = checks.filter(isProblem).length;
  return (
    <p class="note">
      {more
        ? `The first ${plural(checks.length, "invariant")}`
        : plural(checks.length, "invariant")}
      : {problems === 0 ? "none is broken" : plural(problems, "problem")}.
    </p>
  );
}

/** The offenders; for an invariant that holds, its description. */
function Found({ check: c }: { check: Check }) {
  const text = c.error ?? (c.last && found(c.last));
  return text ? <span title={text}>{text}</span> : <span class="muted">{c.description}</span>;
}

function Checks({ checks }: { checks: Check[] }) {
  const checking = useChecking();
  return (
    <Table
      label="Invariants"
      rows={checks}
      rowKey={(c) => c.name}
      rowHref={(c) => href("/invariants/:name", { name: c.name })}
      rowTone={(c) => (urgency(c) < 2 ? "bad" : urgency(c) < 4 ? "warn" : undefined)}
      columns={[
        { title: "Invariant", cell: (c) => c.name },
        {
          title: "Result",
          cell: (c) =>
            checking.has(c.name) ? (
              <Badge state="checking" tone="busy" />
            ) : (
              <Outcome of={c.last} invalid={c.error} />
            ),
        },
        { title: "Severity", cell: (c) => c.severity, wide: true },
        { title: "Found", cell: (c) => <Found check={c} />, grow: true, wide: true },
        {
          title: "Checked",
          cell: (c) => <Time at={c.last?.started_at} none="never" />,
          wide: true,
        },
        {
          title: "Took",
          cell: (c) => duration(c.last?.duration_ms),
          align: "right",
          wide: true,
        },
      ]}
    />
  );
}

export function Invariants() {
  const [show] = useParam("show");
  const [search] = useParam("search");
  const { data, error, loading } = useLoad("checks", readChecks);
  const all = data?.items ?? [];
  const shown = wanted(all, show, search);
  return (
    <>
      <Head title="Invariants">
        <Filter name="search" label="Name or description" />
        <Select name="show" label="Show" choices={SHOW} />
        {all.length > 0 && can("operator", "check:run") && (
          <RunNow label="Check all now" checking={false} />
        )}
      </Head>
      <ErrorBox error={error} />
      {loading && <Loading />}
      {data && all.length === 0 && <NoChecks />}
      {all.length > 0 && <Summary checks={all} more={data?.next !== null} />}
      {all.length > 0 &&
        (shown.length > 0 ? (
          <Checks checks={shown} />
        ) : (
          <Empty title={show === "problems" ? "No problems" : "No matching invariants"} />
        ))}
    </>
  );
}
