// One queue: its jobs by state, pausing it, retrying failed jobs, its settings.
import { send } from "../api";
import {
  Badge,
  confirm,
  Empty,
  ErrorBox,
  Facts,
  Head,
  Id,
  List,
  Loading,
  Panel,
  Tabs,
  Time,
} from "../components";
import { duration, number, plural } from "../format";
import { type Page, readPage, useList, useLive } from "../live";
import { href, useParam } from "../router";
import { can } from "../session";
import { jobTone, retry } from "../jobs";
import type { Job, JobState, Queue as QueueInfo } from "../types";
import type { ViewProps } from "./index";
import { Who } from "./Who";

const NO_NAMES = new Map<string, string>(); /* workers are not keys */
const BATCH = 500; /* jobs retried in one request */

const pathOf = (queue: string): string => `/queues/${encodeURIComponent(queue)}`;

function askToPause(q: QueueInfo): void {
  confirm({
    title: `Pause ${q.name}`,
    text: "Running jobs continue; no new ones are claimed until the queue is resumed.",
    label: "Pause",
    reason: "optional",
    run: async (reason) => {
      await send("POST", `${pathOf(q.name)}/pause`, reason === "" ? {} : { reason });
      return `${q.name} paused`;
    },
  });
}

function askToResume(q: QueueInfo): void {
  confirm({
    title: `Resume ${q.name}`,
    text: `${plural(q.ready, "job is", "jobs are")} ready: workers claim again at once.`,
    label: "Resume",
    run: async () => {
      await send("POST", `${pathOf(q.name)}/resume`);
      return `${q.name} resumed`;
    },
  });
}

interface Results {
  results: { status: string; message?: string }[];
}

/** Retries the jobs that had failed when it began, page by page; later failures are not retried. */
async function retryAll(queue: string): Promise<string> {
  const ids: string[] = [];
  for (let cursor: string | null = null, first = true; first || cursor !== null; first = false) {
    const page: Page<Job> = await readPage<Job>(
      `${pathOf(queue)}/jobs`,
      { state: "FAILED", cursor },
      BATCH,
    );
    ids.push(...page.items.map((j) => j.id));
    cursor = page.next;
  }
  let done = 0;
  for (let at = 0; at < ids.length; at += BATCH) {
    const ops = ids.slice(at, at + BATCH).map((id) => ({ op: "job_retry", id }));
    const { results } = await send<Results>("POST", "/batch", { ops });
    done += results.filter((r) => r.status === "OK").length;
  }
  if (done === ids.length) return `retried ${plural(done, "job")}`;
  return `retried ${number(done)} of ${plural(ids.length, "job")}; the others had changed meanwhile`;
}

function askToRetryAll(q: QueueInfo): void {
  confirm({
    title: "Retry all failed jobs",
    text: `${plural(q.failed, "failed job becomes", "failed jobs become")} due now, with new attempts.`,
    label: "Retry all",
    run: () => retryAll(q.name),
  });
}

const NAMES: [JobState, string][] = [
  ["READY", "Ready"],
  ["RUNNING", "Running"],
  ["SCHEDULED", "Scheduled"],
  ["FAILED", "Failed"],
  ["COMPLETED", "Completed"],
  ["CANCELLED", "Cancelled"],
];

/** The queue's count of jobs in a state; for completed and cancelled jobs it has only totals. */
function countOf(q: QueueInfo, state: JobState): string | undefined {
  switch (state) {
    case "READY":
      return number(q.ready);
    case "RUNNING":
      return number(q.running);
    case "SCHEDULED":
      return number(q.scheduled);
    case "FAILED":
      return number(q.failed);
    default:
      return undefined;
  }
}

const EMPTY: Record<string, string> = {
  FAILED: "No failed jobs. A job fails when no attempts are left.",
  RUNNING:
    "No worker has claimed a job. Workers claim with interlock queue work, or POST /queues/…/claim.",
  SCHEDULED: "Delayed jobs, and those waiting for their next attempt, appear here.",
};

function Jobs({ queue, state }: { queue: string; state: string }) {
  const live = useList<Job>(`${pathOf(queue)}/jobs`, { state });
  return (
    <List
      label="Jobs"
      live={live}
      rowKey={(j) => j.id}
      rowHref={(j) => href("/jobs/:id", { id: j.id })}
      rowTone={(j) => jobTone(j)}
      empty={
        <Empty title="No such jobs">{EMPTY[state] ?? "Jobs in this state appear here."}</Empty>
      }
      columns={[
        { title: "Job", cell: (j) => <Id value={j.id} /> },
        { title: "State", cell: (j) => <Badge state={j.state} /> },
        {
          title: "Attempt",
          cell: (j) => `${j.attempt} of ${j.max_attempts}`,
          align: "right",
          wide: true,
        },
        { title: "Due", cell: (j) => <Time at={j.run_at} />, align: "right", wide: true },
        { title: "Worker", cell: (j) => <Who who={j.worker} names={NO_NAMES} />, wide: true },
        {
          title: "Error or progress",
          cell: (j) => j.error ?? j.message ?? (j.progress === null ? "" : `${j.progress} %`),
          grow: true,
        },
        {
          title: "Actions",
          align: "right",
          cell: (j) =>
            (j.state === "FAILED" || j.state === "CANCELLED") &&
            can("operator", "job:retry") && (
              <button type="button" onClick={() => void retry(j)}>
                Retry
              </button>
            ),
        },
      ]}
    />
  );
}

function Settings({ q }: { q: QueueInfo }) {
  const { settings: s, totals: t } = q;
  const keep = (ms: number | null) => (ms === null ? "forever" : duration(ms));
  return (
    <div class="columns">
      <Panel title="Since the queue was created">
        <Facts
          of={[
            ["Pushed", number(t.pushed)],
            ["Duplicates refused", number(t.duplicates)],
            ["Claimed", number(t.claimed)],
            ["Completed", number(t.completed)],
            ["Failed attempts", number(t.failed_attempts)],
            ["Failed", number(t.failed)],
            ["Snoozed", number(t.snoozed)],
            ["Cancelled", number(t.cancelled)],
            ["Recovered from lost workers", number(t.recovered)],
            ["Stale results rejected", number(t.stale)],
          ]}
        />
      </Panel>
      <Panel title="Settings">
        <Facts
          of={[
            ["Strategy", s.strategy],
            ["Attempts", number(s.max_attempts)],
            ["Lease of a claim", duration(s.lease_ms)],
            ["Backoff", `${duration(s.backoff_ms)} to ${duration(s.backoff_max_ms)}`],
            ["Running per group", s.group_limit === null ? "any number" : number(s.group_limit)],
            [
              "Rate",
              s.rate_n === null ? "no limit" : `${number(s.rate_n)} per ${duration(s.rate_ms)}`,
            ],
            ["Ended jobs are kept", keep(s.keep_ms)],
            ["Failed jobs are kept", keep(s.keep_failed_ms)],
          ]}
        />
      </Panel>
    </div>
  );
}

export function Queue({ names }: ViewProps) {
  const name = names["queue"] ?? "";
  const { data: q, error, loading } = useLive<QueueInfo>(pathOf(name));
  const [tab] = useParam("tab");
  return (
    <>
      <Head title={name} above={{ title: "Queues", href: href("/queues") }}>
        {q?.paused && <Badge state="paused" />}
        {q && q.failed > 0 && can("operator", "job:retry") && (
          <button type="button" onClick={() => askToRetryAll(q)}>
            Retry all failed…
          </button>
        )}
        {q && !q.paused && can("operator", "queue:pause") && (
          <button type="button" onClick={() => askToPause(q)}>
            Pause…
          </button>
        )}
        {q?.paused && can("operator", "queue:resume") && (
          <button type="button" onClick={() => askToResume(q)}>
            Resume…
          </button>
        )}
      </Head>
      <ErrorBox error={error} title="Cannot read the queue" />
      {loading && <Loading />}
      {q && (
        <>
          {q.paused && (
            <p class="muted">
              No jobs are claimed{q.reason !== null && q.reason !== "" && `: ${q.reason}`}.
            </p>
          )}
          <Tabs
            label="Jobs by state"
            tabs={[
              { id: "all", title: "All" },
              ...NAMES.map(([id, title]) => ({
                id: id.toLowerCase(),
                title,
                count: countOf(q, id),
              })),
              { id: "settings", title: "Totals & settings" },
            ]}
          />
          {tab === "settings" ? (
            <Settings q={q} />
          ) : (
            <Jobs queue={name} state={tab.toUpperCase()} />
          )}
        </>
      )}
    </>
  );
}
