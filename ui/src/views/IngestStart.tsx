// Starting ingestions, and their outcome: live stage and progress, or the ingestion that was
// already running.
import { useEffect, useState } from "preact/hooks";
import { explain } from "../act";
import { ApiError, send } from "../api";
import { Badge, Bar } from "../components";
import { duration, plural } from "../format";
import { type Page, refresh, useLive } from "../live";
import { href } from "../router";
import { type Ingestion, PREFIX, type Run } from "./ingest_types";
import { isLive } from "./pipeline_types";

const SHOWN_MAX = 200; /* a server executes a few at a time; the others wait */

/** The running and waiting ingestions, by key. */
export function useRunning(): Map<string, Run> {
  const { data } = useLive<Page<Run>>("/runs", {
    prefix: PREFIX,
    state: "PENDING,RUNNING",
    limit: SHOWN_MAX,
  });
  return new Map(data?.items.map((r) => [r.key, r]));
}

interface Conflict {
  run_id: string | null;
  stage: string | null;
  holder: string;
  age_ms: number;
  hint: string;
}

/** The outcome of a trigger. `conflict`: refused, because the event is already being ingested. */
export type Started = { job: string | null; conflict?: Conflict } | { failed: string };

export async function startIngestion(path: string, body: object): Promise<Started> {
  try {
    return { job: (await send<{ job_id: string }>("POST", path, body)).job_id };
  } catch (e) {
    if (!(e instanceof ApiError) || e.code !== "INGESTION_IN_PROGRESS")
      return { failed: explain(e) };
    const conflict = e.details as unknown as Conflict;
    return { job: conflict.run_id, conflict };
  } finally {
    refresh();
  }
}

const HINTS: Record<string, string> = {
  stale_lock_suspected:
    "The lease has not been renewed recently; its holder may be dead, and it will expire.",
  foreign_lock: "A program that knows only advisory locks holds the event.",
};

export const jobHref = (id: string): string => href("/ingestion/jobs/:id", { id });

function AlreadyRunning({ conflict }: { conflict: Conflict }) {
  return (
    <p>
      Already running for {duration(conflict.age_ms)}
      {conflict.stage && `, at ${conflict.stage.replaceAll("_", " ")}`}; not started again.{" "}
      {HINTS[conflict.hint]}{" "}
      {conflict.run_id ? (
        <a href={jobHref(conflict.run_id)}>Show it</a>
      ) : (
        <span class="muted">Held by {conflict.holder}.</span>
      )}
    </p>
  );
}

/** "12 races, 843 laps", or "nothing has changed". */
export function outcomeText(job: Ingestion): string {
  if (job.error) return job.error.message;
  const result = job.result ?? {};
  if (result["status"] === "already_complete") return "nothing has changed";
  const count = (name: string, one: string) =>
    typeof result[name] === "number" ? plural(result[name], one) : undefined;
  return [count("races_ingested", "race"), count("laps_ingested", "lap")]
    .filter((t) => t !== undefined)
    .join(", ");
}

export function Progress({ job }: { job: Ingestion }) {
  if (job.status === "PENDING")
    return <span>Waiting{job.queue_position > 0 && `, place ${job.queue_position} in line`}</span>;
  const p = job.progress;
  const of = p && p.total !== null ? ` ${p.done}/${p.total}` : "";
  return (
    <Bar
      share={(p?.percent ?? 0) / 100}
      text={`${job.stage_label ?? "Starting"}${of}`}
      label="Progress"
    />
  );
}

/** One ingestion in a line, read every second until it has ended. */
function JobLine({ id }: { id: string }) {
  const [ended, setEnded] = useState(false);
  const { data: job } = useLive<Ingestion>(
    `/ingestion/status/${id}`,
    {},
    { every: ended ? 0 : 1000 },
  );
  useEffect(() => {
    if (job && !isLive(job.status)) setEnded(true);
  }, [job]);
  if (!job) return null;
  return (
    <p class="inline">
      <Badge state={job.status} />
      {isLive(job.status) ? (
        <Progress job={job} />
      ) : (
        <span class={job.error ? "error-text" : ""}>{outcomeText(job)}</span>
      )}
      <a href={jobHref(id)}>Details</a>
    </p>
  );
}

/** The outcome of a trigger, in a cell of a table: the state links to the details. */
export function StartedCell({ started }: { started: Started }) {
  const [job, conflict] = "failed" in started ? [null, undefined] : [started.job, started.conflict];
  const { data } = useLive<Ingestion>(`/ingestion/status/${job}`, {}, { when: job !== null });
  if ("failed" in started) return <Badge state="refused" tone="bad" title={started.failed} />;
  if (job === null)
    return <span title={conflict && HINTS[conflict.hint]}>held by {conflict?.holder}</span>;
  return (
    <a href={jobHref(job)}>
      {conflict
        ? `already running for ${duration(conflict.age_ms)}`
        : data && <Badge state={data.status} title={outcomeText(data)} />}
    </a>
  );
}

export function StartedLine({ started }: { started: Started }) {
  if ("failed" in started) return <p class="error-text">{started.failed}</p>;
  return (
    <>
      {started.conflict && <AlreadyRunning conflict={started.conflict} />}
      {started.job !== null && <JobLine key={started.job} id={started.job} />}
    </>
  );
}

/** A running or waiting run of the listing. */
export function RunningLine({ run }: { run: Run }) {
  return (
    <span class="inline">
      {run.state === "PENDING" ? (
        <span>waiting{run.position > 0 && `, place ${run.position}`}</span>
      ) : (
        <Bar
          share={(run.progress ?? 0) / 100}
          text={(run.stage ?? "starting").replaceAll("_", " ")}
          label="Progress"
        />
      )}
      <a href={jobHref(run.id)}>Details</a>
    </span>
  );
}
