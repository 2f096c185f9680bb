// Daily usage: a chart of a range, its days and who used what, and how the cache does. Looking
// fetches nothing from the source; the buttons do.
import { useEffect, useMemo } from "preact/hooks";
import { act } from "../act";
import { send } from "../api";
import { Badge, Bar, Chart, Command, confirm, Empty, ErrorBox, Facts, Head, Loading, Panel, Select, Table, Tabs, Time, type Tone } from "../components";
import { number, percent, plural } from "../format";
import { type Page, useLive, useLoad } from "../live";
import { href, useParam } from "../router";
import { can } from "../session";
import { download, exportPath } from "./download";
import { type By, type Day, dayBefore, daysUpTo, forgetDays, type Metric, type Metrics, type Part, readDays, total, totalBy } from "./usage_days";

const RANGES = ["14", "7", "30", "90"];
const PARTS_SHOWN = 100;
const RUN_KEY = "usage:rebuild";

const money = new Intl.NumberFormat("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const spend = (micros: number): string => money.format(micros / 1_000_000);

const CHARTS: { value: Metric; title: string; format: (n: number) => string }[] = [
  { value: "spend_micros", title: "Spend", format: spend },
  { value: "api_requests", title: "Requests", format: number },
  { value: "failed_requests", title: "Failed requests", format: number },
  { value: "total_tokens", title: "Tokens", format: number },
];

const TONES: Record<Day["state"], Tone> = { fresh: "ok", stale: "warn", missing: "idle" };

const secondsOf = (date: string): number => Date.parse(`${date}T00:00:00Z`) / 1000;

interface RebuildRun {
  id: string;
  state: string;
  progress: number | null;
  stage: string | null;
  error: string | null;
  created_at: string | null;
  ended_at: string | null;
}

interface CacheMetrics {
  cacheHits: number;
  cacheMisses: number;
  cacheRebuilds: number;
  lockAcquisitionSuccesses: number;
  lockAcquisitionFailures: number;
  gracePeriodApplications: number;
}

// ---- what can be done ----------------------------------------------------------------------------

function askRebuild(days: Day[]): void {
  const from = days[0]?.date ?? "";
  const to = days[days.length - 1]?.date ?? "";
  confirm({
    title: "Rebuild days",
    text: "The days are fetched from the source in the background, one run at a time.",
    label: "Rebuild",
    fields: (
      <>
        <label class="field">
          <span>First day (UTC)</span>
          <input type="date" name="from" required defaultValue={from} max={to} />
        </label>
        <label class="field">
          <span>Last day (UTC)</span>
          <input type="date" name="to" required defaultValue={to} max={to} />
        </label>
        <label class="check">
          <input type="checkbox" name="force" /> Also days that are complete
        </label>
      </>
    ),
    run: async (_, form) => {
      const body = { startDate: form.get("from"), endDate: form.get("to"), force: form.get("force") !== null };
      await send("POST", "/admin/usage/rebuild-cache", body);
      return "Rebuild started";
    },
  });
}

async function fetchMissing(days: Day[]): Promise<void> {
  const range = { startDate: days[0]?.date, endDate: days[days.length - 1]?.date };
  const late = (a: { pending: string[]; missing: string[] }) => a.pending.length + a.missing.length;
  await act<{ pending: string[]; missing: string[] }>("POST", "/admin/usage/analytics", range, (a) => {
    forgetDays();
    return late(a) === 0 ? "All days are stored" : `${plural(late(a), "day")} still to come, or not available`;
  });
}

async function refreshToday(): Promise<void> {
  await act("POST", "/admin/usage/refresh-today", undefined, () => {
    forgetDays();
    return "Today's figures were fetched";
  });
}

function Buttons({ days }: { days: Day[] }) {
  const old = days.filter((d) => d.state !== "fresh").length;
  const writes = can("admin:usage:write");
  return (
    <>
      {old > 0 && (
        <button type="button" title="Asks the source for the days that are missing or stale" onClick={() => void fetchMissing(days)}>
          Fetch {plural(old, "day")}
        </button>
      )}
      {writes && (
        <button type="button" onClick={() => void refreshToday()}>
          Refresh today
        </button>
      )}
      {writes && (
        <button type="button" onClick={() => askRebuild(days)}>
          Rebuild…
        </button>
      )}
      <button type="button" title="Days that are missing are fetched for it" onClick={() => void download(exportPath(days), "usage.csv")}>
        Export CSV
      </button>
    </>
  );
}

/** The last rebuild; when it ends, the days are read again. */
function Rebuild() {
  const { data } = useLive<Page<RebuildRun>>("/runs", { key: RUN_KEY, limit: 1 });
  const run = data?.items[0];
  const ended = run?.ended_at;
  useEffect(() => {
    if (ended) forgetDays();
  }, [ended]);
  if (!run) return null;
  return (
    <p class="inline">
      <span>Last rebuild:</span>
      <a href={href("/runs/:id", { id: run.id })}>{run.id.slice(0, 8)}</a>
      <Badge state={run.state} title={run.error ?? undefined} />
      {ended ? <Time at={ended} /> : <Bar share={(run.progress ?? 0) / 100} text={run.stage ?? `${run.progress ?? 0} %`} label="Progress of the rebuild" />}
    </p>
  );
}

// ---- what is shown -------------------------------------------------------------------------------

function Sums({ sum }: { sum: Metrics }) {
  return (
    <Facts
      of={[
        ["Spend", spend(sum.spend_micros)],
        ["Requests", number(sum.api_requests)],
        ["Failed", `${number(sum.failed_requests)} (${percent(sum.failed_requests, sum.api_requests)})`],
        ["Tokens", number(sum.total_tokens)],
        ["Prompt", number(sum.prompt_tokens)],
        ["Completion", number(sum.completion_tokens)],
      ]}
    />
  );
}

function Days({ days }: { days: Day[] }) {
  return (
    <Table
      label="Days"
      rows={[...days].reverse()}
      rowKey={(d) => d.date}
      rowTone={(d) => (d.state === "stale" ? "warn" : undefined)}
      columns={[
        { title: "Day (UTC)", cell: (d) => d.date },
        { title: "State", cell: (d) => <Badge state={d.state} tone={TONES[d.state]} title={d.stored?.error} /> },
        { title: "Kept", cell: (d) => d.stored && (d.stored.is_complete ? "for good" : "for a while"), wide: true },
        { title: "Requests", cell: (d) => d.stored && number(d.stored.metrics.api_requests), align: "right" },
        { title: "Failed", cell: (d) => d.stored && number(d.stored.metrics.failed_requests), align: "right", wide: true },
        { title: "Tokens", cell: (d) => d.stored && number(d.stored.metrics.total_tokens), align: "right", wide: true },
        { title: "Spend", cell: (d) => d.stored && spend(d.stored.metrics.spend_micros), align: "right" },
        { title: "Built", cell: (d) => d.stored && <Time at={d.stored.updated_at} />, wide: true },
      ]}
    />
  );
}

function Parts({ days, by, title }: { days: Day[]; by: By; title: string }) {
  const parts = useMemo(() => totalBy(days, by), [days, by]);
  const all = total(days).spend_micros;
  if (parts.length === 0) return <Empty title={`No ${title.toLowerCase()}s`}>The days of this range name none.</Empty>;
  return (
    <>
      <Table<Part>
        label={`${title}s`}
        rows={parts.slice(0, PARTS_SHOWN)}
        rowKey={(p) => p.name}
        columns={[
          { title, cell: (p) => p.name, grow: true },
          { title: "Requests", cell: (p) => number(p.api_requests), align: "right" },
          { title: "Failed", cell: (p) => number(p.failed_requests), align: "right", wide: true },
          { title: "Tokens", cell: (p) => number(p.total_tokens), align: "right", wide: true },
          { title: "Spend", cell: (p) => spend(p.spend_micros), align: "right" },
          { title: "Share", cell: (p) => <Bar share={all === 0 ? 0 : p.spend_micros / all} text={percent(p.spend_micros, all)} label="Share of the spend" />, wide: true },
        ]}
      />
      {parts.length > PARTS_SHOWN && <p class="muted">The {PARTS_SHOWN} largest of {number(parts.length)}. The export has them all.</p>}
    </>
  );
}

function Cache() {
  const { data: m, error } = useLive<CacheMetrics>("/admin/usage/cache/metrics", {}, { every: 5000 });
  return (
    <Panel title="Cache of this server">
      <ErrorBox error={error} />
      {m && (
        <Facts
          of={[
            ["Hit rate", percent(m.cacheHits, m.cacheHits + m.cacheMisses)],
            ["Hits", number(m.cacheHits)],
            ["Misses", number(m.cacheMisses)],
            ["Days built", number(m.cacheRebuilds)],
            ["Contention", percent(m.lockAcquisitionFailures, m.lockAcquisitionSuccesses + m.lockAcquisitionFailures)],
            ["Grace period applied", number(m.gracePeriodApplications)],
          ]}
        />
      )}
      <p class="muted">Counted since the server was started; this page's reads count, too.</p>
      {can("read", "run:list") && <Rebuild />}
    </Panel>
  );
}

const NotServed = () => (
  <Empty title="Usage is not served">
    <p>The server has no source of daily figures. Name one in its configuration, or try it with an invented one:</p>
    <Command>{"usage:\n  source: {type: generator}"}</Command>
  </Empty>
);

const BYS: Record<string, [By, string]> = {
  user: ["by_user", "User"],
  model: ["by_model", "Model"],
  provider: ["by_provider", "Provider"],
};

function Range({ days }: { days: Day[] }) {
  const [metric] = useParam("metric");
  const [tab] = useParam("tab");
  const chart = CHARTS.find((c) => c.value === metric) ?? CHARTS[0]!;
  const times = useMemo(() => days.map((d) => secondsOf(d.date)), [days]);
  const series = useMemo(
    () => [{ label: chart.title, color: 1 as const, values: days.map((d) => d.stored?.metrics[chart.value] ?? null) }],
    [days, chart],
  );
  const by = BYS[tab];
  const missing = days.filter((d) => d.state === "missing").length;
  return (
    <>
      <div class="columns">
        <Panel title="Sums of the range">
          <Sums sum={total(days)} />
          {missing > 0 && <p class="muted">Without {plural(missing, "day")} that {missing === 1 ? "is" : "are"} not stored.</p>}
        </Panel>
        <Cache />
      </div>
      <Panel title="Days" tools={<Select name="metric" label="Chart" choices={CHARTS} />}>
        <Chart title={`${chart.title} by day`} times={times} series={series} format={chart.format} height={180} style="bars" />
        <Tabs label="Breakdown" tabs={[{ id: "day", title: "By day" }, { id: "user", title: "By user" }, { id: "model", title: "By model" }, { id: "provider", title: "By provider" }]} />
        {by ? <Parts days={days} by={by[0]} title={by[1]} /> : <Days days={days} />}
      </Panel>
    </>
  );
}

export function Usage() {
  const [days] = useParam("days");
  const n = RANGES.includes(days) ? Number(days) : Number(RANGES[0]);
  const last = dayBefore(Date.now(), 0);
  const { data, error, loading } = useLoad(`usage ${n} ${last}`, (signal) => readDays(daysUpTo(last, n), signal));
  const notServed = error?.code === "USAGE_NOT_SERVED";
  return (
    <>
      <Head title="Usage">
        <Select name="days" label="Range" choices={RANGES.map((value) => ({ value, title: `${value} days` }))} />
        {data && !notServed && <Buttons days={data} />}
      </Head>
      {notServed ? <NotServed /> : <ErrorBox error={error} />}
      {loading && <Loading />}
      {data && !notServed && <Range days={data} />}
    </>
  );
}
