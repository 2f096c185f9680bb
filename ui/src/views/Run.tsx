// One run: its progress, its steps on a time line, the triggers that joined it, its output; cancel
// it or run it again. The parts of a pipeline's run come from the routes of pipelines.
import { act } from "../act";
import { send } from "../api";
import {
  Badge,
  confirm,
  Copyable,
  ErrorBox,
  Facts,
  Head,
  Json,
  Loading,
  Output,
  Panel,
  Table,
  Time,
  Timeline,
} from "../components";
import { bytes, duration, plural } from "../format";
import { TimeLeft } from "../leases";
import { useLive } from "../live";
import { href, navigate } from "../router";
import { can } from "../session";
import type { Run as RunInfo } from "../types";
import type { ViewProps } from "./index";
import { Progress } from "./Runs";
import { useKeyNames, Who } from "./Who";

interface Attempt {
  attempt: number;
  status: string;
  start_time: string | null;
  end_time: string | null;
  duration_ms: number | null;
  exit_code: number | null;
  error_message: string | null;
}

interface Step extends Attempt {
  step_id: string;
  type: string;
  level: number;
  attempts: Attempt[];
}

interface PipelineRun {
  pipeline_id: string;
  parameters: Record<string, unknown> | null;
  version: string | null;
  node: string | null;
  renewals: number;
  renewed_at: string | null;
  joined: {
    at: string | null;
    trigger_by: string | null;
    trigger_type: string | null;
    request_id: string | null;
  }[];
  steps: Step[];
}

const PIPELINE = "pipeline:";
const CHECK = "check:";

const isLive = (r: RunInfo): boolean => r.state === "RUNNING" || r.state === "PENDING";

function askToCancel(r: RunInfo): void {
  const path = `/runs/${encodeURIComponent(r.id)}`;
  confirm({
    title: "Cancel this run",
    text:
      r.state === "PENDING"
        ? "It has not started and will not start."
        : "It is asked to stop; its processes are killed if it does not stop.",
    label: "Cancel run",
    danger: true,
    reason: "required",
    run: async (reason) => {
      if (r.key.startsWith(PIPELINE)) await send("DELETE", `/pipelines${path}`, { reason });
      else await send("POST", `${path}/cancel`, { reason });
      return r.state === "PENDING" ? "cancelled the run" : "asked the run to stop";
    },
  });
}

const canCancel = (r: RunInfo): boolean =>
  isLive(r) &&
  !r.cancelled &&
  (r.key.startsWith(PIPELINE)
    ? can("write", "pipeline:run_cancel")
    : can("operator", "run:cancel"));

/** Starts the same pipeline or check again, and goes to the new run. */
async function runAgain(r: RunInfo, of: PipelineRun | undefined): Promise<void> {
  if (r.key.startsWith(CHECK)) {
    const answer = await act<{ items: { run_id: string | null }[] }>("POST", "/checks/run", {
      names: [r.key.slice(CHECK.length)],
    });
    const id = answer?.items[0]?.run_id;
    if (id) navigate(href("/runs/:id", { id }));
    return;
  }
  const pipeline = r.key.slice(PIPELINE.length);
  const answer = await act<{ pipeline_logging_id: string; message: string }>(
    "POST",
    `/pipelines/run/${encodeURIComponent(pipeline)}`,
    of?.parameters ?? {},
    (a) => a.message,
  );
  if (answer) navigate(href("/runs/:id", { id: answer.pipeline_logging_id }));
}

const canRunAgain = (r: RunInfo): boolean =>
  !isLive(r) &&
  ((r.key.startsWith(PIPELINE) && can("write", "pipeline:run")) ||
    (r.key.startsWith(CHECK) && can("operator", "check:run")));

function Steps({ steps }: { steps: Step[] }) {
  const failed = steps.filter((s) => s.error_message !== null);
  return (
    <Panel title="Steps">
      <Timeline
        label="Steps"
        rows={steps.map((s) => ({
          id: s.step_id,
          title: s.step_id,
          note: s.attempt > 1 ? `${s.type}, attempt ${s.attempt}` : s.type,
          state: s.status,
          duration_ms: s.duration_ms,
          spans: s.attempts.map((a) => ({
            state: a.status,
            start: a.start_time,
            end: a.end_time,
            title: `attempt ${a.attempt} ${a.status.toLowerCase()}`,
          })),
        }))}
      />
      {failed.map((s) => (
        <p key={s.step_id} class="error-text">
          <b>{s.step_id}</b>: {s.error_message}
        </p>
      ))}
    </Panel>
  );
}

function Joined({ joined }: { joined: PipelineRun["joined"] }) {
  const names = useKeyNames();
  return (
    <Panel title={`${plural(joined.length, "duplicate trigger")} joined this run`}>
      <Table
        label="Triggers that joined"
        rows={joined}
        rowKey={(j) => `${j.at} ${j.request_id}`}
        columns={[
          { title: "When", cell: (j) => <Time at={j.at} /> },
          { title: "By", cell: (j) => <Who who={j.trigger_by} names={names} /> },
          { title: "Trigger", cell: (j) => j.trigger_type ?? "–", wide: true },
          {
            title: "Request",
            cell: (j) => <Copyable value={j.request_id ?? "–"} label="request id" />,
            wide: true,
          },
        ]}
      />
    </Panel>
  );
}

function About({ run, of }: { run: RunInfo; of: PipelineRun | undefined }) {
  const names = useKeyNames();
  return (
    <Panel title="About">
      <Facts
        of={[
          ["State", <Badge state={run.state} />],
          [
            "Progress",
            isLive(run) && (run.stage !== null || run.progress !== null) && <Progress of={run} />,
          ],
          ["Lease", run.state === "RUNNING" && <TimeLeft of={run} />],
          ["Place in line", run.state === "PENDING" && run.position > 0 && run.position],
          ["Key", <a href={href("/locks/:key", { key: run.key })}>{run.key}</a>],
          ["Run", <Copyable value={run.id} label="run id" />],
          [
            "Trigger",
            run.by !== null && run.by !== run.trigger ? (
              <>
                {run.trigger ?? "–"} by <Who who={run.by} names={names} />
              </>
            ) : (
              run.trigger
            ),
          ],
          ["Created", <Time at={run.created_at} />],
          ["Started", <Time at={run.started_at} none="not yet" />],
          ["Ended", run.ended_at !== null && <Time at={run.ended_at} />],
          ["Took", run.duration_ms !== null && duration(run.duration_ms)],
          ["Holder", run.holder !== null && <Copyable value={run.holder} label="holder" />],
          ["Fence", run.fence !== null && <Copyable value={String(run.fence)} label="fence" />],
          ["Server", of?.node],
          ["Renewals", of && of.renewals > 0 && plural(of.renewals, "renewal")],
          ["Joined", run.joined > 0 && plural(run.joined, "duplicate")],
          ["Output", bytes(run.log_bytes)],
        ]}
      />
      {run.error !== null && <p class="error-text">{run.error}</p>}
    </Panel>
  );
}

export function Run({ names }: ViewProps) {
  const id = names["id"] ?? "";
  const { data: run, error, loading } = useLive<RunInfo>(`/runs/${encodeURIComponent(id)}`);
  const isPipeline = run?.key.startsWith(PIPELINE) ?? false;
  const { data: of } = useLive<PipelineRun>(
    `/pipelines/runs/${encodeURIComponent(id)}`,
    {},
    { when: isPipeline },
  );
  return (
    <>
      <Head title={run?.key ?? "Run"} above={{ title: "Runs", href: href("/runs") }}>
        {run && run.cancelled && run.state === "RUNNING" && <Badge state="cancelling" />}
        {run && isPipeline && (
          <a class="button" href={href("/pipelines/:id", { id: run.key.slice(PIPELINE.length) })}>
            Pipeline
          </a>
        )}
        {run && canRunAgain(run) && (
          <button type="button" onClick={() => void runAgain(run, of)}>
            Run again
          </button>
        )}
        {run && canCancel(run) && (
          <button type="button" class="danger-text" onClick={() => askToCancel(run)}>
            Cancel…
          </button>
        )}
      </Head>
      <ErrorBox error={error} title="Cannot read the run" />
      {loading && <Loading />}
      {run && (
        <>
          <About run={run} of={of} />
          {of && of.steps.length > 0 && <Steps steps={of.steps} />}
          {of && of.joined.length > 0 && <Joined joined={of.joined} />}
          <Panel title="Output">
            <Output path={`/runs/${encodeURIComponent(id)}/log`} />
          </Panel>
          {run.meta !== null && run.meta !== "" && (
            <Panel title="Meta">
              <Json value={run.meta} label="Meta of the run" />
            </Panel>
          )}
        </>
      )}
    </>
  );
}
