// One event: its ingestions and its races.
import { useState } from "preact/hooks";
import {
  Badge,
  Copyable,
  Empty,
  ErrorBox,
  Facts,
  Head,
  Loading,
  Panel,
  Table,
  Time,
} from "../components";
import { duration, number, plural, shortId } from "../format";
import { type Page, useLive } from "../live";
import { href } from "../router";
import { can } from "../session";
import type { ViewProps } from ".";
import { jobHref, RunningLine, type Started, StartedLine, startIngestion } from "./IngestStart";
import { depthText, type EventFull, keyOf, type Run } from "./ingest_types";
import { isLive } from "./pipeline_types";

function EventFacts({ event: e }: { event: EventFull }) {
  return (
    <Facts
      of={[
        ["Depth", <Badge state={depthText(e.ingest_depth)} tone={e.complete ? "ok" : "idle"} />],
        ["Last ingested", <Time at={e.last_ingested_at} none="never" />],
        [
          "Track",
          <a href={href("/ingestion", {}, { track: e.track_slug })}>
            {e.track_name ?? e.track_slug}
          </a>,
        ],
        [
          "Days",
          e.last_day && e.last_day !== e.first_day
            ? `${e.first_day} to ${e.last_day}`
            : e.first_day,
        ],
        ["Entries", e.n_entries !== null && number(e.n_entries)],
        ["Drivers", e.n_drivers !== null && number(e.n_drivers)],
        ["Laps", e.n_laps !== null && number(e.n_laps)],
        ["Id at the site", <Copyable value={e.source_event_id} label="id at the site" />],
        ["Id", <Copyable value={e.id} label="id" />],
      ]}
    />
  );
}

function Ingest({ event, run }: { event: EventFull; run: Run | undefined }) {
  const [busy, setBusy] = useState(false);
  const [started, setStarted] = useState<Started>();
  const start = async (force: boolean) => {
    setBusy(true);
    setStarted(await startIngestion(`/events/${encodeURIComponent(event.id)}/ingest`, { force }));
    setBusy(false);
  };
  const running = run && isLive(run.state) ? run : undefined;
  const ingested = event.ingest_depth !== "none";
  return (
    <Panel title="Ingestion">
      {running ? (
        <p class="inline">
          <span>Being ingested:</span> <RunningLine run={running} />
        </p>
      ) : (
        can("write", "ingest:event") && (
          <p class="inline">
            <button type="button" class="primary" disabled={busy} onClick={() => void start(false)}>
              {ingested ? "Ingest changes" : "Ingest"}
            </button>
            {ingested && (
              <button type="button" disabled={busy} onClick={() => void start(true)}>
                Re-ingest everything
              </button>
            )}
          </p>
        )
      )}
      <div role="status">{started && !running && <StartedLine started={started} />}</div>
    </Panel>
  );
}

function History({ runs }: { runs: Run[] }) {
  if (runs.length === 0) return null;
  return (
    <Panel title="Last ingestions">
      <Table
        label="Last ingestions"
        rows={runs}
        rowKey={(r) => r.id}
        rowHref={(r) => jobHref(r.id)}
        columns={[
          { title: "Run", cell: (r) => <span class="mono">{shortId(r.id)}</span> },
          { title: "State", cell: (r) => <Badge state={r.state} /> },
          { title: "Started", cell: (r) => <Time at={r.started_at ?? r.created_at} /> },
          { title: "Took", cell: (r) => duration(r.duration_ms), align: "right" },
          { title: "By", cell: (r) => r.trigger, wide: true },
          { title: "Error", cell: (r) => r.error, grow: true },
        ]}
      />
    </Panel>
  );
}

function Races({ event }: { event: EventFull }) {
  return (
    <Panel title={plural(event.races.length, "race")}>
      {event.races.length === 0 ? (
        <Empty title="No races stored">Ingest the event to read them.</Empty>
      ) : (
        <Table
          label="Races"
          rows={event.races}
          rowKey={(r) => r.id}
          rowHref={(r) => href("/ingestion/races/:id", { id: r.id })}
          columns={[
            { title: "Race", cell: (r) => r.label },
            { title: "Class", cell: (r) => r.class_name, wide: true },
            { title: "Session", cell: (r) => r.session_type },
            { title: "Section", cell: (r) => r.section, grow: true, wide: true },
            { title: "Results", cell: (r) => number(r.n_results), align: "right" },
            {
              title: "Laps",
              cell: (r) => (r.has_laps ? "yes" : <span class="muted">none</span>),
            },
            { title: "Completed", cell: (r) => r.completed_at?.replace("T", " "), wide: true },
          ]}
        />
      )}
    </Panel>
  );
}

export function IngestionEvent({ names }: ViewProps) {
  const id = names["id"] ?? "";
  const { data, error, loading } = useLive<EventFull>(`/events/${encodeURIComponent(id)}`);
  const runs = useLive<Page<Run>>(
    "/runs",
    { key: data && keyOf(data.source_event_id), limit: 10 },
    { when: data !== undefined },
  );
  const list = runs.data?.items ?? [];
  return (
    <>
      <Head title={data?.name ?? id} above={{ title: "Ingestion", href: href("/ingestion") }} />
      <ErrorBox error={error} />
      {loading && <Loading />}
      {data && (
        <>
          <div class="columns">
            <Panel title="Event">
              <EventFacts event={data} />
            </Panel>
            <Ingest event={data} run={list[0]} />
          </div>
          <History runs={list} />
          <Races event={data} />
        </>
      )}
    </>
  );
}
