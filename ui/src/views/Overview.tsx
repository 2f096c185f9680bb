// The overview: problems first, then counts, then the last hour.
import type { ComponentChildren } from "preact";
import type { ApiError } from "../api";
import { Chart, Empty, ErrorBox, Head, Icon, Loading, Panel, type Series } from "../components";
import { age, duration, few, type Few, number, percent, plural } from "../format";
import { type Live, type Page, useLive, useLoad } from "../live";
import { href } from "../router";
import { can } from "../session";
import type { OrderEdge, Queue, Run } from "../types";
import { found as foundBy, isProblem, readChecks } from "./InvariantOutcome";
import type { Check } from "./check_types";

/** A lease with less than a fifth of its TTL left, which its holder did not renew. */
interface ExpiringLease {
  key: string;
  holder: string;
  run_id: string | null;
  ttl_ms: number;
  remaining_ms: number;
}

interface Counts {
  locks: Few;
  locks_expiring: Few;
  waiters: Few;
  runs: Few;
  queues: Few;
  jobs_scheduled: Few;
  jobs_ready: Few;
  jobs_running: Few;
  jobs_failed: Few;
  leases_expiring: ExpiringLease[];
  runs_expiring: ExpiringLease[];
}

interface Sample {
  at_ms: number;
  locks: number;
  runs: number;
  jobs_ready: number;
  jobs_running: number;
  jobs_failed: number;
  acquires: number;
  conflicts: number;
  cache_hits: number;
  cache_misses: number;
  requests: number;
}

interface Samples {
  interval_ms: number;
  samples: Sample[];
}

interface PipelineLock {
  pipeline_id: string;
  pipeline_logging_id: string | null;
  age_ms: number;
  expiring: boolean;
}

// ---- problems -----------------------------------------------------------------------------------

interface Problem {
  id: string;
  tone: "bad" | "warn";
  kind: string;
  text: ComponentChildren;
  href: string;
}

const SHOWN = 5; /* of one kind; the others are counted, with a link to the list */

const ENDED_BADLY = new Set(["FAILED", "TIMEOUT", "INTERRUPTED"]);

const unrenewed = (n: ExpiringLease): string =>
  `last renewed ${age(n.ttl_ms - n.remaining_ms)} ago, ${duration(Math.max(0, n.remaining_ms))} left`;

/** A run is listed once, not also as the lease that it holds. */
function ofLeases({ leases_expiring: leases, runs_expiring: runs }: Counts): Problem[] {
  const listed = new Set(runs.map((r) => r.key));
  return leases
    .filter((l) => !listed.has(l.key))
    .map((l) => ({
      id: `lease ${l.key} ${l.holder}`,
      tone: "warn",
      kind: "Lease about to expire",
      text: `${l.key}: ${unrenewed(l)}`,
      href: href("/locks/:key", { key: l.key }),
    }));
}

function ofStuck({ runs_expiring: runs }: Counts): Problem[] {
  return runs.map((r) => ({
    id: `stuck ${r.run_id}`,
    tone: "bad",
    kind: "Run may be stuck",
    text: `${r.key}: ${unrenewed(r)}`,
    href: href("/runs/:id", { id: r.run_id ?? "" }),
  }));
}

/** Keys whose newest run failed. */
function ofRuns(runs: Run[]): Problem[] {
  const seen = new Set<string>();
  const found: Problem[] = [];
  for (const r of runs) {
    const isNewest = !seen.has(r.key);
    seen.add(r.key);
    if (isNewest && ENDED_BADLY.has(r.state)) {
      found.push({
        id: r.id,
        tone: "bad",
        kind: `Run ${r.state.toLowerCase()}`,
        text: r.error === null ? r.key : `${r.key}: ${r.error}`,
        href: href("/runs/:id", { id: r.id }),
      });
    }
  }
  return found;
}

function ofQueues(queues: Queue[]): Problem[] {
  const found: Problem[] = [];
  for (const q of queues) {
    const queue = { queue: q.name };
    if (q.failed > 0) {
      found.push({
        id: `failed ${q.name}`,
        tone: "bad",
        kind: "Failed jobs",
        text: `${q.name}: ${plural(q.failed, "job")} with no attempts left`,
        href: href("/queues/:queue", queue, { tab: "failed" }),
      });
    }
    if (q.paused) {
      found.push({
        id: `paused ${q.name}`,
        tone: "warn",
        kind: "Queue paused",
        text: `${q.name}: ${plural(q.ready, "job is", "jobs are")} waiting${q.reason ? `; ${q.reason}` : ""}`,
        href: href("/queues/:queue", queue),
      });
    }
  }
  return found;
}

function ofPipelines(locks: PipelineLock[]): Problem[] {
  return locks
    .filter((l) => l.expiring)
    .map((l) => ({
      id: `long ${l.pipeline_id}`,
      tone: "warn",
      kind: "Held too long",
      text: `${l.pipeline_id}: has held its lock for ${duration(l.age_ms)}, above the alert threshold`,
      href:
        l.pipeline_logging_id === null
          ? href("/locks/:key", { key: `pipeline:${l.pipeline_id}` })
          : href("/runs/:id", { id: l.pipeline_logging_id }),
    }));
}

function ofChecks(checks: Check[]): Problem[] {
  return checks.filter(isProblem).map((c) => {
    const isBroken = c.error === null && c.last?.outcome === "broken";
    return {
      id: `check ${c.name}`,
      tone: c.severity === "error" ? "bad" : "warn",
      kind: isBroken ? "Invariant broken" : "Invariant not run",
      text: `${c.name}: ${c.error ?? (c.last && foundBy(c.last))}`,
      href: href("/invariants/:name", { name: c.name }),
    };
  });
}

function ofOrder(edges: OrderEdge[]): Problem[] {
  const inverted = edges.filter((e) => e.inverted);
  if (inverted.length === 0) return [];
  const names = [...new Set(inverted.flatMap((e) => [e.from, e.to]))];
  return [
    {
      id: "order",
      tone: "warn",
      kind: "Lock order",
      text: `${names.join(", ")} are acquired in opposite orders, which can deadlock`,
      href: href("/order", {}, { inverted: true }),
    },
  ];
}

/** Problems of one kind beyond SHOWN are counted in one more row. */
function shorten(found: Problem[], list: string): Problem[] {
  const rest = found.length - SHOWN;
  const first = found[SHOWN];
  if (rest <= 0 || !first) return found;
  return [
    ...found.slice(0, SHOWN),
    {
      id: `more ${first.id}`,
      tone: first.tone,
      kind: first.kind,
      text: `and ${number(rest)} more`,
      href: list,
    },
  ];
}

function Attention({ found, complete }: { found: Problem[]; complete: boolean }) {
  return (
    <Panel title={found.length > 0 ? "Needs attention" : "Attention"}>
      {found.length === 0 ? (
        <p class="all-well">
          {complete
            ? "Nothing needs attention: leases are renewed, and no runs or jobs have failed."
            : "Reading…"}
        </p>
      ) : (
        <ul class="attention">
          {found.map((p) => (
            <li key={p.id} data-row tabIndex={-1}>
              <a class={`row-link problem ${p.tone}`} href={p.href}>
                <Icon name="warn" />
                <b>{p.kind}</b>
                <span>{p.text}</span>
              </a>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

// ---- counts -------------------------------------------------------------------------------------

function Tile({
  title,
  value,
  to,
  note,
  tone,
}: {
  title: string;
  value: string;
  to?: string;
  note?: string | undefined;
  tone?: "bad" | undefined;
}) {
  const inside = (
    <>
      <span class="tile-title">{title}</span>
      <span class={`tile-value ${tone ?? ""}`}>{value}</span>
      {note !== undefined && <span class="muted">{note}</span>}
    </>
  );
  return to === undefined ? (
    <div class="tile">{inside}</div>
  ) : (
    <a class="tile" href={to}>
      {inside}
    </a>
  );
}

const sum = (samples: Sample[], of: (s: Sample) => number): number =>
  samples.reduce((n, s) => n + of(s), 0);

function Rates({ samples }: { samples: Sample[] }) {
  const conflicts = sum(samples, (s) => s.conflicts);
  const attempts = conflicts + sum(samples, (s) => s.acquires);
  const hits = sum(samples, (s) => s.cache_hits);
  const looks = hits + sum(samples, (s) => s.cache_misses);
  return (
    <>
      <Tile
        title="Conflict rate"
        value={percent(conflicts, attempts)}
        note={`of ${plural(attempts, "attempt")}, last hour`}
      />
      <Tile
        title="Cache hit rate"
        value={percent(hits, looks)}
        note={`of ${plural(looks, "look-up")}, last hour`}
      />
    </>
  );
}

/** `samples`: undefined if the key may not see them. */
function Tiles({ counts: c, samples }: { counts: Counts; samples: Sample[] | undefined }) {
  return (
    <div class="tiles">
      <Tile title="Locks held" value={few(c.locks)} to={href("/locks")} />
      <Tile
        title="Expiring soon"
        value={number(c.locks_expiring.n)}
        to={href("/locks", {}, { expiring: true })}
        note={c.locks_expiring.more ? "of the first 1,000" : undefined}
        tone={c.locks_expiring.n > 0 ? "bad" : undefined}
      />
      <Tile title="Waiting" value={few(c.waiters)} to={href("/locks", {}, { tab: "waiting" })} />
      <Tile title="Runs" value={few(c.runs)} to={href("/runs", {}, { state: "RUNNING" })} />
      <Tile title="Jobs ready" value={few(c.jobs_ready)} to={href("/queues")} />
      <Tile title="Jobs running" value={few(c.jobs_running)} to={href("/queues")} />
      <Tile title="Jobs scheduled" value={few(c.jobs_scheduled)} to={href("/queues")} />
      <Tile
        title="Failed jobs"
        value={few(c.jobs_failed)}
        to={href("/queues")}
        tone={c.jobs_failed.n > 0 ? "bad" : undefined}
      />
      {samples && <Rates samples={samples} />}
    </div>
  );
}

// ---- the last hour ------------------------------------------------------------------------------

function Charts({ interval_ms, samples }: Samples) {
  const times = samples.map((s) => s.at_ms / 1000);
  const seconds = interval_ms / 1000;
  const now = (label: string, color: Series["color"], of: (s: Sample) => number): Series => ({
    label,
    color,
    values: samples.map(of),
  });
  const rate = (label: string, color: Series["color"], of: (s: Sample) => number): Series =>
    now(label, color, (s) => of(s) / seconds);
  return (
    <div class="charts">
      <Chart
        title="Held and running"
        times={times}
        series={[now("locks", 1, (s) => s.locks), now("runs", 2, (s) => s.runs)]}
      />
      <Chart
        title="Jobs"
        times={times}
        series={[
          now("ready", 1, (s) => s.jobs_ready),
          now("running", 2, (s) => s.jobs_running),
          now("failed", "bad", (s) => s.jobs_failed),
        ]}
      />
      <Chart
        title="Locks per second"
        times={times}
        series={[rate("granted", 1, (s) => s.acquires), rate("conflicts", 3, (s) => s.conflicts)]}
      />
      <Chart
        title="Cache per second"
        times={times}
        series={[rate("hits", 5, (s) => s.cache_hits), rate("misses", 3, (s) => s.cache_misses)]}
      />
      <Chart
        title="Requests per second"
        times={times}
        series={[rate("requests", 4, (s) => s.requests)]}
      />
    </div>
  );
}

// ---- the view -----------------------------------------------------------------------------------

const MANY = 200; /* rows of each listing that are searched for problems */
const SELDOM = { every: 10_000 };

interface Problems {
  found: Problem[];
  /** Everything was read. */
  complete: boolean;
  error: ApiError | undefined;
}

const rowsOf = <T,>(live: Live<Page<T>>): T[] => live.data?.items ?? [];

function useProblems(counts: Live<Counts>): Problems {
  const runs = useLive<Page<Run>>("/runs", { limit: MANY });
  const queues = useLive<Page<Queue>>("/queues", { limit: MANY });
  // Not every server has pipelines, checks and a lock order.
  const pipelines = useLive<Page<PipelineLock>>("/pipelines/locks", {}, SELDOM);
  const checks = useLoad("checks", readChecks, SELDOM);
  const order = useLive<Page<OrderEdge>>("/locks/order", { limit: 1000 }, SELDOM);
  const now = counts.data;
  const found = [
    ...shorten(now ? ofStuck(now) : [], href("/runs", {}, { state: "RUNNING" })),
    ...shorten(ofRuns(rowsOf(runs)), href("/runs", {}, { state: "FAILED,TIMEOUT,INTERRUPTED" })),
    ...shorten(ofQueues(rowsOf(queues)), href("/queues")),
    ...shorten(ofChecks(rowsOf(checks)), href("/invariants", {}, { show: "problems" })),
    ...shorten(now ? ofLeases(now) : [], href("/locks", {}, { expiring: true })),
    ...shorten(ofPipelines(rowsOf(pipelines)), href("/pipelines")),
    ...ofOrder(rowsOf(order)),
  ];
  found.sort((a, b) => Number(a.tone === "warn") - Number(b.tone === "warn"));
  const needed = [counts, runs, queues];
  const complete = needed.every((l) => l.data !== undefined && l.error === undefined);
  return { found, complete, error: needed.find((l) => l.error)?.error };
}

export function Overview() {
  const counts = useLive<Counts>("/overview");
  const sampled = can("read", "samples:get", "");
  const hour = useLive<Samples>("/samples", {}, { every: 5000, when: sampled });
  const { error, ...problems } = useProblems(counts);
  const samples = hour.data?.samples ?? [];
  return (
    <>
      <Head title="Overview" />
      <ErrorBox error={error} title="Cannot read the overview" />
      <Attention {...problems} />
      {counts.loading && <Loading />}
      {counts.data && <Tiles counts={counts.data} samples={sampled ? samples : undefined} />}
      {sampled && (
        <Panel title="Last hour">
          <ErrorBox error={hour.error} title="Cannot read the samples" />
          {hour.data && samples.length > 1 && <Charts {...hour.data} />}
          {hour.data && samples.length <= 1 && (
            <Empty title="No samples yet">
              The server takes a sample every ten seconds from the first request on. Charts appear
              shortly.
            </Empty>
          )}
        </Panel>
      )}
    </>
  );
}
