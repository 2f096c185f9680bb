// How often a constraint had to refuse a write of the campus because another call was first: the
// share of rollbacks by row, and the races that were caught. Read from /metrics.
import { ApiError, open } from "../api";
import { Badge, Empty, ErrorBox, Facts, Panel, Table } from "../components";
import { duration, number, percent } from "../format";
import { useLoad } from "../live";
import { href } from "../router";

const PIPELINES = ["enrollment", "booking", "reward", "skill", "campus"];
const RATE_MAX = 0.05; /* more rollbacks than this deserve a look */

interface Row {
  pipeline: string;
  entity: string;
  locks: number;
  refused: number;
  holdMs: number;
}

interface Integrity {
  rows: Row[];
  /** Refused writes by race. */
  races: [string, number][];
  nullDeltas: number;
}

/** A label of a sample: label('{a="1",b="2"}', "b") is "2". */
const label = (labels: string, name: string): string =>
  new RegExp(`${name}="([^"]*)"`).exec(labels)?.[1] ?? "";

/** The samples of a metric, by their labels. */
function samplesOf(text: string, metric: string): Map<string, number> {
  const lines = text.matchAll(new RegExp(`^${metric}\\{([^}]*)\\} (\\S+)$`, "gm"));
  return new Map([...lines].map((l) => [l[1] ?? "", Number(l[2])]));
}

function parse(metrics: string): Integrity {
  const locks = samplesOf(metrics, "interlock_row_lock_hold_seconds_count");
  const held = samplesOf(metrics, "interlock_row_lock_hold_seconds_sum");
  const refused = samplesOf(metrics, "interlock_row_lock_violations_total");
  const races = samplesOf(metrics, "interlock_campus_integrity_rollbacks_total");
  const deltas = /^interlock_campus_null_deltas_permille (\S+)$/m.exec(metrics);
  const ours = [...locks].filter(([labels]) => PIPELINES.includes(label(labels, "pipeline")));
  return {
    rows: ours.map(([labels, n]) => ({
      pipeline: label(labels, "pipeline"),
      entity: label(labels, "entity"),
      locks: n,
      refused: refused.get(labels) ?? 0,
      holdMs: n === 0 ? 0 : (1000 * (held.get(labels) ?? 0)) / n,
    })),
    races: [...races].map(([labels, n]) => [label(labels, "race"), n]),
    nullDeltas: Number(deltas?.[1] ?? 0),
  };
}

/** Null where /metrics has an address of its own. */
async function read(signal: AbortSignal): Promise<Integrity | null> {
  try {
    return parse(await (await open("GET", "/metrics", { signal })).text());
  } catch (e) {
    if (e instanceof ApiError && e.status === 404) return null;
    throw e;
  }
}

function Rates({ rows }: { rows: Row[] }) {
  if (rows.length === 0) {
    return (
      <Empty title="No row of the campus was locked yet">Enroll a user, or book a session.</Empty>
    );
  }
  const tooMany = (e: Row): boolean => e.refused > RATE_MAX * e.locks;
  return (
    <Table
      label="Rollbacks"
      rows={rows}
      rowKey={(e) => `${e.pipeline} ${e.entity}`}
      rowTone={(e) => (tooMany(e) ? "warn" : undefined)}
      columns={[
        { title: "Pipeline", cell: (e) => e.pipeline },
        { title: "Row of", cell: (e) => e.entity, grow: true },
        { title: "Locked", cell: (e) => number(e.locks), align: "right" },
        { title: "Rolled back", cell: (e) => number(e.refused), align: "right" },
        {
          title: "Rate",
          cell: (e) => (
            <Badge state={percent(e.refused, e.locks)} tone={tooMany(e) ? "warn" : "ok"} />
          ),
          align: "right",
        },
        { title: "Held on average", cell: (e) => duration(e.holdMs), align: "right", wide: true },
      ]}
    />
  );
}

export function CampusIntegrity() {
  const { data, error } = useLoad("campus integrity", read, { every: 5000 });
  return (
    <Panel title="Rollbacks for integrity, on this server">
      <ErrorBox error={error} />
      {data === null && (
        <p class="muted">Metrics are served on a separate address.</p>
      )}
      {data && (
        <>
          <Facts
            of={[
              ...data.races.map(([race, n]): [string, string] => [
                `Caught: ${race.replaceAll("_", " ")}`,
                number(n),
              ]),
              ["Participations without a delta", `${(data.nullDeltas / 10).toFixed(1)} %`],
            ]}
          />
          <p class="note">
            A write is rolled back when a constraint refuses it because another call came first.
            Counted since the server was started. See also the{" "}
            <a href={href("/invariants", {}, { search: "campus." })}>invariants</a>.
          </p>
          <Rates rows={data.rows} />
        </>
      )}
    </Panel>
  );
}
