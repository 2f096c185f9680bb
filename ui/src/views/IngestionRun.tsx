// One ingestion: its stage and progress, the time of each stage, the stored rows, the error.
import {
  Badge,
  Bar,
  confirm,
  ErrorBox,
  Facts,
  Head,
  Json,
  Loading,
  Panel,
  Table,
  Time,
} from "../components";
import { send } from "../api";
import { duration, number, shortId } from "../format";
import { useLive } from "../live";
import { href } from "../router";
import { can } from "../session";
import type { ViewProps } from ".";
import { outcomeText, Progress } from "./IngestStart";
import type { Ingestion, Stage } from "./ingest_types";
import { isLive } from "./pipeline_types";
import { useKeyNames, Who } from "./Who";

const KINDS: Record<string, string> = {
  event: "One event",
  tracks: "The list of tracks",
  events: "The events of a track",
  recent: "Recent events",
};

function askCancel(id: string): void {
  confirm({
    title: "Cancel this ingestion?",
    text: "Stored races are kept; the next ingestion stores the others.",
    label: "Cancel ingestion",
    danger: true,
    reason: "optional",
    run: async (reason) => {
      await send("DELETE", `/ingestion/status/${id}`, reason ? { reason } : undefined);
      return "Asked the ingestion to stop";
    },
  });
}

const isEmpty = (value: unknown): boolean =>
  value === null || (Array.isArray(value) && value.length === 0);

function Failure({ error }: { error: NonNullable<Ingestion["error"]> }) {
  return (
    <div class="error-box" role="alert">
      <div>
        <p>
          <strong>{error.message}</strong> <code>{error.code}</code>
        </p>
        {Object.entries(error.details)
          .filter(([, value]) => !isEmpty(value))
          .map(([name, value]) => (
            <p key={name}>
              {name.replaceAll("_", " ")}:{" "}
              {typeof value === "string" ? value : JSON.stringify(value)}
            </p>
          ))}
      </div>
    </div>
  );
}

/** "races 12 new · laps 843 new, 3 changed" */
function rowsText(rows: Stage["rows"]): string {
  const names: [string, string][] = [
    ["inserted", "new"],
    ["updated", "changed"],
    ["removed", "removed"],
    ["unchanged", "unchanged"],
  ];
  return Object.entries(rows ?? {})
    .map(([table, counts]) => {
      const parts = names.flatMap(([name, word]) =>
        counts[name] ? [`${number(counts[name])} ${word}`] : [],
      );
      return `${table.replaceAll("_", " ")}: ${parts.join(", ") || "none"}`;
    })
    .join(" · ");
}

function Timeline({ stages }: { stages: Stage[] }) {
  const longest = Math.max(1, ...stages.map((s) => s.duration_ms ?? 0));
  return (
    <Panel title="Stages">
      <Table
        label="Stages"
        rows={stages}
        rowKey={(s) => s.stage}
        columns={[
          { title: "Stage", cell: (s) => s.label },
          { title: "State", cell: (s) => <Badge state={s.status} /> },
          {
            title: "Took",
            cell: (s) => (
              <Bar
                share={(s.duration_ms ?? 0) / longest}
                text={duration(s.duration_ms)}
                label="Share of the longest stage"
              />
            ),
          },
          {
            title: "Rows",
            cell: (s) => <span title={rowsText(s.rows)}>{rowsText(s.rows)}</span>,
            grow: true,
            wide: true,
          },
        ]}
      />
    </Panel>
  );
}

function JobFacts({ job }: { job: Ingestion }) {
  const names = useKeyNames();
  return (
    <Facts
      of={[
        [
          "State",
          <Badge state={job.cancelling && isLive(job.status) ? "cancelling" : job.status} />,
        ],
        ["Progress", isLive(job.status) && <Progress job={job} />],
        ["Stored", !isLive(job.status) && !job.error && outcomeText(job)],
        ["Reads", KINDS[job.kind] ?? job.kind],
        [
          "Event",
          job.event_id && (
            <a href={href("/ingestion/events/:id", { id: job.event_id })}>
              {job.source_event_id ?? job.event_id}
            </a>
          ),
        ],
        [
          "Track",
          job.track_slug && (
            <a href={href("/ingestion", {}, { track: job.track_slug })}>{job.track_slug}</a>
          ),
        ],
        ["Requested", <Time at={job.created_at} />],
        ["Started", job.started_at && <Time at={job.started_at} />],
        ["Ended", job.ended_at && <Time at={job.ended_at} />],
        ["Took", duration(job.duration_ms)],
        ["Started through", job.trigger_type],
        [
          "Started by",
          job.trigger_by && <Who who={job.trigger_by} names={names} />,
        ],
        [
          "Run",
          <a href={href("/runs/:id", { id: job.job_id })}>{shortId(job.job_id)}: log and lease</a>,
        ],
      ]}
    />
  );
}

export function IngestionRun({ names }: ViewProps) {
  const id = encodeURIComponent(names["id"] ?? "");
  const { data: job, error, loading } = useLive<Ingestion>(`/ingestion/status/${id}`);
  return (
    <>
      <Head
        title={`Ingestion ${shortId(id)}`}
        above={{ title: "Ingestion", href: href("/ingestion", {}, { tab: "runs" }) }}
      >
        {job && isLive(job.status) && !job.cancelling && can("write", "ingest:cancel") && (
          <button type="button" class="danger-text" onClick={() => askCancel(id)}>
            Cancel…
          </button>
        )}
      </Head>
      <ErrorBox error={error} />
      {loading && <Loading />}
      {job && (
        <>
          {job.error && <Failure error={job.error} />}
          <Panel title="Ingestion">
            <JobFacts job={job} />
          </Panel>
          {job.timeline.length > 0 && <Timeline stages={job.timeline} />}
          {job.result && (
            <Panel title="Result">
              <Json value={job.result} label="result" />
            </Panel>
          )}
        </>
      )}
    </>
  );
}
