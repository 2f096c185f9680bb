// One job: its state, attempts, error, payload and result.
import { send } from "../api";
import {
  Badge,
  Bar,
  confirm,
  Copyable,
  ErrorBox,
  Facts,
  Head,
  Json,
  Loading,
  Panel,
  Time,
  timeAgo,
} from "../components";
import { bytes, number } from "../format";
import { jobPath, retry } from "../jobs";
import { useLive } from "../live";
import { href } from "../router";
import { can } from "../session";
import type { Job as JobInfo } from "../types";
import type { ViewProps } from "./index";

const hasEnded = (j: JobInfo): boolean =>
  j.state === "COMPLETED" || j.state === "FAILED" || j.state === "CANCELLED";
const isDelayed = (j: JobInfo): boolean => j.state === "SCHEDULED";
const canRetry = (j: JobInfo): boolean =>
  (j.state === "FAILED" || j.state === "CANCELLED" || isDelayed(j)) && can("operator", "job:retry");
const canCancel = (j: JobInfo): boolean =>
  !hasEnded(j) && !j.cancelled && can("operator", "job:cancel");

function askToCancel(j: JobInfo): void {
  confirm({
    title: "Cancel this job",
    text:
      j.state === "RUNNING"
        ? "Its worker is asked to stop at its next heartbeat."
        : "It will not run.",
    label: "Cancel job",
    danger: true,
    reason: "optional",
    run: async (reason) => {
      await send("POST", `${jobPath(j.id)}/cancel`, reason === "" ? {} : { reason });
      return j.state === "RUNNING" ? "asked the worker to stop" : "cancelled the job";
    },
  });
}

/** The payload or the result: JSON, text, or base64 if it is not text. */
function Value({
  title,
  value,
  base64,
  size,
}: {
  title: string;
  value: unknown;
  base64?: string | undefined;
  size: number | null;
}) {
  return (
    <Panel title={title} tools={size !== null && <span class="muted">{bytes(size)}</span>}>
      {base64 !== undefined && <p class="muted">Not text: shown as base64.</p>}
      <Json value={base64 ?? value} label={title} />
    </Panel>
  );
}

function About({ job }: { job: JobInfo }) {
  const { children } = job;
  return (
    <Panel title="About">
      <Facts
        of={[
          ["State", <Badge state={job.state} />],
          ["Attempt", `${number(job.attempt)} of ${number(job.max_attempts)}`],
          [
            "Progress",
            job.progress !== null && (
              <Bar share={job.progress / 100} text={`${job.progress} %`} label="Progress" />
            ),
          ],
          ["Message", job.message],
          ["Job", <Copyable value={job.id} label="job id" />],
          ["Queue", <a href={href("/queues/:queue", { queue: job.queue })}>{job.queue}</a>],
          ["Due", <Time at={job.run_at} />],
          ["Pushed", <Time at={job.created_at} />],
          ["Last started", <Time at={job.started_at} none="not yet" />],
          ["Ended", job.completed_at !== null && <Time at={job.completed_at} />],
          ["Worker", job.worker !== null && <Copyable value={job.worker} label="worker" />],
          ["Claim expires", job.state === "RUNNING" && <Time at={timeAgo(-job.remaining_ms)} />],
          ["Priority", job.priority !== 0 && number(job.priority)],
          ["Group", job.group],
          [
            "Unique key",
            job.unique_key !== null && <Copyable value={job.unique_key} label="unique key" />,
          ],
          [
            "Parent",
            job.parent !== null && (
              <a class="mono" href={href("/jobs/:id", { id: job.parent })}>
                {job.parent}
              </a>
            ),
          ],
          [
            "Children",
            children &&
              `${number(children.completed)} of ${number(children.total)} completed, ${number(children.failed)} failed`,
          ],
        ]}
      />
      {job.error !== null && (
        <>
          <h3>Last error</h3>
          <Json value={job.error} label="Last error" />
        </>
      )}
    </Panel>
  );
}

export function Job({ names }: ViewProps) {
  const id = names["id"] ?? "";
  const { data: job, error, loading } = useLive<JobInfo>(jobPath(id));
  const queue = job?.queue;
  return (
    <>
      <Head
        title={<Copyable value={id} label="job id" />}
        above={
          queue === undefined
            ? { title: "Queues", href: href("/queues") }
            : { title: queue, href: href("/queues/:queue", { queue }) }
        }
      >
        {job?.cancelled && !hasEnded(job) && <Badge state="cancelling" />}
        {job && canRetry(job) && (
          <button type="button" class="primary" onClick={() => void retry(job)}>
            {isDelayed(job) ? "Run now" : "Retry"}
          </button>
        )}
        {job && canCancel(job) && (
          <button type="button" class="danger-text" onClick={() => askToCancel(job)}>
            Cancel…
          </button>
        )}
      </Head>
      <ErrorBox error={error} title="Cannot read the job" />
      {loading && <Loading />}
      {job && (
        <>
          <About job={job} />
          <div class="columns">
            <Value
              title="Payload"
              value={job.payload}
              base64={job.payload_base64}
              size={job.payload_bytes}
            />
            <Value
              title="Result"
              value={job.result}
              base64={job.result_base64}
              size={job.result_bytes}
            />
          </div>
        </>
      )}
    </>
  );
}
