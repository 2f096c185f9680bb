// One pipeline: its steps drawn with the states of the last run, a form to trigger it, its runs.
import {
  Badge,
  Bar,
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
import { duration, shortId } from "../format";
import { useList, useLive } from "../live";
import { href } from "../router";
import { can } from "../session";
import {
  isLive,
  type PipelineFull,
  type PipelineRun,
  type PipelineRunFull,
  type RunStep,
  type Step,
} from "./pipeline_types";
import { StepGraph } from "./StepGraph";
import { Trigger } from "./Trigger";
import { useKeyNames, Who } from "./Who";
import type { ViewProps } from ".";

function PipelineFacts({ pipeline: p }: { pipeline: PipelineFull }) {
  return (
    <Facts
      of={[
        ["Description", p.description],
        ["Version", p.version],
        ["Schedule", p.schedule && `${p.schedule} (${p.timezone ?? "UTC"})`],
        ["Next run", p.schedule && <Time at={p.next_run_at} />],
        ["On conflict", p.on_conflict],
        ["Timeout", duration(p.timeout_ms)],
        [
          "Expected to hold the lock for",
          p.lock_timeout_ms !== null && duration(p.lock_timeout_ms),
        ],
        ["Preflight probe", p.preflight && "yes"],
      ]}
    />
  );
}

function Steps({ steps, run }: { steps: Step[]; run: RunStep[] | undefined }) {
  const state = new Map(run?.map((s) => [s.step_id, s]));
  return (
    <Table
      label="Steps"
      rows={steps}
      rowKey={(s) => s.step_id}
      columns={[
        { title: "Step", cell: (s) => s.step_id },
        { title: "Type", cell: (s) => s.type },
        { title: "Level", cell: (s) => s.level, align: "right", wide: true },
        {
          title: "Needs",
          cell: (s) => s.depends_on.join(", ") || <span class="muted">nothing</span>,
          grow: true,
          wide: true,
        },
        { title: "Retries", cell: (s) => s.retries, align: "right", wide: true },
        {
          title: "Timeout",
          cell: (s) => duration(s.timeout_ms),
          align: "right",
          wide: true,
        },
        { title: "On failure", cell: (s) => s.on_failure, wide: true },
        {
          title: "Last run",
          cell: (s) => {
            const ran = state.get(s.step_id);
            return ran && <Badge state={ran.status} title={ran.error_message ?? undefined} />;
          },
        },
        {
          title: "Took",
          cell: (s) => duration(state.get(s.step_id)?.duration_ms),
          align: "right",
        },
      ]}
    />
  );
}

function LastRun({ run }: { run: PipelineRun }) {
  return (
    <span class="inline">
      <span class="muted">Run</span>
      <a href={href("/runs/:id", { id: run.pipeline_logging_id })}>
        {shortId(run.pipeline_logging_id)}
      </a>
      <Badge state={run.status} title={run.error_message ?? undefined} />
      {isLive(run.status) ? (
        <Bar share={(run.progress ?? 0) / 100} text={`${run.progress ?? 0} %`} label="Progress" />
      ) : (
        <Time at={run.end_time ?? run.created_at} />
      )}
    </span>
  );
}

function Runs({ pipeline }: { pipeline: string }) {
  const names = useKeyNames();
  const live = useList<PipelineRun>("/pipelines/runs", { pipeline_id: pipeline }, 20);
  return (
    <Panel title="Runs">
      <List
        label="Runs"
        live={live}
        rowKey={(r) => r.pipeline_logging_id}
        rowHref={(r) => href("/runs/:id", { id: r.pipeline_logging_id })}
        empty={
          <Empty title="No runs yet">
            Trigger it above{can("write") ? "" : " with a key that may write"}, or give it a
            schedule.
          </Empty>
        }
        columns={[
          {
            title: "Run",
            cell: (r) => <span class="mono">{shortId(r.pipeline_logging_id)}</span>,
          },
          {
            title: "State",
            cell: (r) => <Badge state={r.cancelling ? "cancelling" : r.status} />,
          },
          { title: "Triggered", cell: (r) => <Time at={r.created_at} /> },
          {
            title: "By",
            cell: (r) => <Who who={r.trigger_by ?? r.trigger_type} names={names} />,
            wide: true,
          },
          { title: "Joined", cell: (r) => r.joins, align: "right", wide: true },
          { title: "Took", cell: (r) => duration(r.duration_ms), align: "right" },
          { title: "Error", cell: (r) => r.error_message, grow: true, wide: true },
        ]}
      />
    </Panel>
  );
}

export function Pipeline({ names }: ViewProps) {
  const id = names["id"] ?? "";
  const { data, error, loading } = useLive<PipelineFull>(`/pipelines/${encodeURIComponent(id)}`);
  const last = data?.last_run ?? null;
  const run = useLive<PipelineRunFull>(
    `/pipelines/runs/${last?.pipeline_logging_id}`,
    {},
    { when: last !== null },
  ).data;
  return (
    <>
      <Head title={id} above={{ title: "Pipelines", href: href("/pipelines") }} />
      <ErrorBox error={error} />
      {loading && <Loading />}
      {data && (
        <>
          <div class="columns">
            <Panel title="Settings">
              <PipelineFacts pipeline={data} />
            </Panel>
            {can("write", "pipeline:run") && <Trigger pipeline={data} />}
          </div>
          <Panel title="Steps" tools={last && <LastRun run={last} />}>
            <StepGraph steps={data.steps} run={run?.steps} />
            <Steps steps={data.steps} run={run?.steps} />
          </Panel>
        </>
      )}
      <Runs pipeline={id} />
    </>
  );
}
