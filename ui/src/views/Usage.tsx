// Daily usage: a chart of a range, its days, its users, models and providers, and the cache's
// counters. Only the buttons fetch days from the source.
import { useMemo } from "preact/hooks";
import {
  Badge,
  Bar,
  Chart,
  Command,
  Empty,
  ErrorBox,
  Facts,
  Head,
  Loading,
  Panel,
  Select,
  Table,
  Tabs,
  Time,
  type Tone,
} from "../components";
import { number, percent, plural } from "../format";
import { useLive, useLoad } from "../live";
import { useParam } from "../router";
import { can } from "../session";
import { LastRebuild, UsageButtons } from "./UsageActions";
import {
  type By,
  type Day,
  dayBefore,
  daysUpTo,
  type Metric,
  type Metrics,
  type Part,
  readDays,
  total,
  totalBy,
} from "./usage_days";

const RANGES = ["14", "7", "30", "90"];
const PARTS_SHOWN = 100;

const money = new Intl.NumberFormat("en-US", {
  minimumFractionDigits: 2,
  maximumFractionDigits: 2,
});
const spend = (micros: number): string => money.format(micros / 1_000_000);

const CHARTS: { value: Metric; title: string; format: (n: number) => string }[] = [
  { value: "spend_micros", title: "Spend", format: spend },
  { value: "api_requests", title: "Requests", format: number },
  { value: "failed_requests", title: "Failed requests", format: number },
  { value: "total_tokens", title: "Tokens", format: number },
];

const TONES: Record<Day["state"], Tone> = { fresh: "ok", stale: "warn", missing: "idle" };

const secondsOf = (date: string): number => Date.parse(`${date}T00:00:00Z`) / 1000;

interface CacheMetrics {
  cacheHits: number;
  cacheMisses: number;
  cacheRebuilds: number;
  lockAcquisitionSuccesses: number;
  lockAcquisitionFailures: number;
  gracePeriodApplications: number;
}

function Sums({ sum }: { sum: Metrics }) {
  return (
    <Facts
      of={[
        ["Spend", spend(sum.spend_micros)],
        ["Requests", number(sum.api_requests)],
        [
          "Failed",
          `${number(sum.failed_requests)} (${percent(sum.failed_requests, sum.api_requests)})`,
        ],
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
        {
          title: "State",
          cell: (d) => <Badge state={d.state} tone={TONES[d.state]} title={d.stored?.error} />,
        },
        {
          title: "Final",
          cell: (d) => d.stored && (d.stored.is_complete ? "yes" : "no"),
          wide: true,
        },
        {
          title: "Requests",
          cell: (d) => d.stored && number(d.stored.metrics.api_requests),
          align: "right",
        },
        {
          title: "Failed",
          cell: (d) => d.stored && number(d.stored.metrics.failed_requests),
          align: "right",
          wide: true,
        },
        {
          title: "Tokens",
          cell: (d) => d.stored && number(d.stored.metrics.total_tokens),
          align: "right",
          wide: true,
        },
        {
          title: "Spend",
          cell: (d) => d.stored && spend(d.stored.metrics.spend_micros),
          align: "right",
        },
        {
          title: "Built",
          cell: (d) => d.stored && <Time at={d.stored.updated_at} />,
          wide: true,
        },
      ]}
    />
  );
}

function Parts({ days, by, title }: { days: Day[]; by: By; title: string }) {
  const parts = useMemo(() => totalBy(days, by), [days, by]);
  const all = total(days).spend_micros;
  if (parts.length === 0)
    return <Empty title={`No ${title.toLowerCase()}s`}>This range contains none.</Empty>;
  return (
    <>
      <Table<Part>
        label={`${title}s`}
        rows={parts.slice(0, PARTS_SHOWN)}
        rowKey={(p) => p.name}
        columns={[
          { title, cell: (p) => p.name, grow: true },
          { title: "Requests", cell: (p) => number(p.api_requests), align: "right" },
          {
            title: "Failed",
            cell: (p) => number(p.failed_requests),
            align: "right",
            wide: true,
          },
          {
            title: "Tokens",
            cell: (p) => number(p.total_tokens),
            align: "right",
            wide: true,
          },
          { title: "Spend", cell: (p) => spend(p.spend_micros), align: "right" },
          {
            title: "Share",
            cell: (p) => (
              <Bar
                share={all === 0 ? 0 : p.spend_micros / all}
                text={percent(p.spend_micros, all)}
                label="Share of the spend"
              />
            ),
            wide: true,
          },
        ]}
      />
      {parts.length > PARTS_SHOWN && (
        <p class="muted">
          The {PARTS_SHOWN} largest of {number(parts.length)}. The export has them all.
        </p>
      )}
    </>
  );
}

function Cache() {
  const { data: m, error } = useLive<CacheMetrics>(
    "/admin/usage/cache/metrics",
    {},
    { every: 5000 },
  );
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
            [
              "Contention",
              percent(
                m.lockAcquisitionFailures,
                m.lockAcquisitionSuccesses + m.lockAcquisitionFailures,
              ),
            ],
            ["Grace period applied", number(m.gracePeriodApplications)],
          ]}
        />
      )}
      <p class="muted">Counted since the server was started, including this page's reads.</p>
      {can("read", "run:list") && <LastRebuild />}
    </Panel>
  );
}

const NotServed = () => (
  <Empty title="Usage is not configured">
    <p>Configure a source of usage data, or try generated data:</p>
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
    () => [
      {
        label: chart.title,
        color: 1 as const,
        values: days.map((d) => d.stored?.metrics[chart.value] ?? null),
      },
    ],
    [days, chart],
  );
  const by = BYS[tab];
  const missing = days.filter((d) => d.state === "missing").length;
  return (
    <>
      <div class="columns">
        <Panel title="Sums of the range">
          <Sums sum={total(days)} />
          {missing > 0 && (
            <p class="muted">
              {plural(missing, "day")} {missing === 1 ? "is" : "are"} not stored and not included.
            </p>
          )}
        </Panel>
        <Cache />
      </div>
      <Panel title="Days" tools={<Select name="metric" label="Chart" choices={CHARTS} />}>
        <Chart
          title={`${chart.title} by day`}
          times={times}
          series={series}
          format={chart.format}
          height={180}
          style="bars"
        />
        <Tabs
          label="Breakdown"
          tabs={[
            { id: "day", title: "By day" },
            { id: "user", title: "By user" },
            { id: "model", title: "By model" },
            { id: "provider", title: "By provider" },
          ]}
        />
        {by ? <Parts days={days} by={by[0]} title={by[1]} /> : <Days days={days} />}
      </Panel>
    </>
  );
}

export function Usage() {
  const [days] = useParam("days");
  const n = RANGES.includes(days) ? Number(days) : Number(RANGES[0]);
  const last = dayBefore(Date.now(), 0);
  const { data, error, loading } = useLoad(`usage ${n} ${last}`, (signal) =>
    readDays(daysUpTo(last, n), signal),
  );
  const notServed = error?.code === "USAGE_NOT_SERVED";
  return (
    <>
      <Head title="Usage">
        <Select
          name="days"
          label="Range"
          choices={RANGES.map((value) => ({ value, title: `${value} days` }))}
        />
        {data && !notServed && <UsageButtons days={data} />}
      </Head>
      {notServed ? <NotServed /> : <ErrorBox error={error} />}
      {loading && <Loading />}
      {data && !notServed && <Range days={data} />}
    </>
  );
}
