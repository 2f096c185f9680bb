// Race results: the events with their ingestions, what can be read from the site, the ingestions.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Badge, Empty, Filter, Head, List, Panel, Select, Tabs, Time } from "../components";
import { duration, number } from "../format";
import { useList } from "../live";
import { href, setParams, useParam, useRoute } from "../router";
import { can } from "../session";
import {
  jobHref,
  RunningLine,
  type Started,
  StartedCell,
  StartedLine,
  startIngestion,
  useRunning,
} from "./IngestStart";
import { IngestLinks, LINK_STATES } from "./IngestLinks";
import { depthText, type EventRow, keyOf, PREFIX, type Run, subjectOf } from "./ingest_types";

const DEPTHS = [
  { value: "", title: "any" },
  { value: "none", title: depthText("none") },
  { value: "laps_full", title: depthText("laps_full") },
];

const SORTS = [
  { value: "date", title: "newest first" },
  { value: "oldest", title: "oldest first" },
  { value: "name", title: "by name" },
  { value: "ingested", title: "last ingested first" },
];

const STATES = [
  { value: "", title: "all" },
  { value: "PENDING,RUNNING", title: "running or waiting" },
  { value: "FAILED,TIMEOUT,INTERRUPTED", title: "failed" },
  { value: "COMPLETED", title: "completed" },
];

// ---- events -------------------------------------------------------------------------------------

interface IngestionCellProps {
  event: EventRow;
  run: Run | undefined;
}

/** What can be done about an event. While it is being ingested, no second one can be started. */
function IngestionCell({ event, run }: IngestionCellProps) {
  const [busy, setBusy] = useState(false);
  const [started, setStarted] = useState<Started>();
  if (run) return <RunningLine run={run} />;
  const ingested = event.ingest_depth !== "none";
  const start = async () => {
    setBusy(true);
    setStarted(
      await startIngestion(`/events/${encodeURIComponent(event.id)}/ingest`, {
        force: ingested,
      }),
    );
    setBusy(false);
  };
  return (
    <span class="inline">
      {can("write", "ingest:event") && (
        <button
          type="button"
          disabled={busy}
          aria-label={`${ingested ? "Re-ingest" : "Ingest"} ${event.name}`}
          onClick={() => void start()}
        >
          {ingested ? "Re-ingest" : "Ingest"}
        </button>
      )}
      {started && <StartedCell started={started} />}
    </span>
  );
}

function NoEvents() {
  const { query } = useRoute();
  if (["search", "depth", "track"].some((name) => query.get(name))) {
    return (
      <Empty title="No matching events">
        <button type="button" onClick={() => setParams({ search: null, depth: null, track: null })}>
          Show all events
        </button>
      </Empty>
    );
  }
  return (
    <Empty title="No events yet">
      <p>
        Read the list of tracks and then the events of one, under{" "}
        <a href={href("/ingestion", {}, { tab: "site" })}>From the site</a>. Listed events can be
        ingested here.
      </p>
    </Empty>
  );
}

function Events() {
  const [search] = useParam("search");
  const [depth] = useParam("depth");
  const [track] = useParam("track");
  const [sort] = useParam("sort");
  const live = useList<EventRow>("/events", { search, depth, track, sort });
  const running = useRunning();
  return (
    <List
      label="Events"
      live={live}
      rowKey={(e) => e.id}
      rowHref={(e) => href("/ingestion/events/:id", { id: e.id })}
      empty={<NoEvents />}
      columns={[
        { title: "Event", cell: (e) => e.name, grow: true },
        {
          title: "Track",
          cell: (e) => (
            <a href={href("/ingestion", {}, { track: e.track_slug })}>
              {e.track_name ?? e.track_slug}
            </a>
          ),
          wide: true,
        },
        { title: "Date", cell: (e) => e.first_day, wide: true },
        { title: "Races", cell: (e) => number(e.n_races), align: "right", wide: true },
        {
          title: "Laps",
          cell: (e) => (e.n_laps === null ? "–" : number(e.n_laps)),
          align: "right",
          wide: true,
        },
        {
          title: "Depth",
          cell: (e) => (
            <Badge state={depthText(e.ingest_depth)} tone={e.complete ? "ok" : "idle"} />
          ),
          wide: true,
        },
        {
          title: "Ingested",
          cell: (e) => <Time at={e.last_ingested_at} none="never" />,
          wide: true,
        },
        {
          title: "Ingestion",
          cell: (e) => <IngestionCell event={e} run={running.get(keyOf(e.source_event_id))} />,
        },
      ]}
    />
  );
}

// ---- from the site ------------------------------------------------------------------------------

interface StartFormProps {
  title: string;
  label: string;
  path: string;
  /** The body, from the values of the fields. */
  body: (form: FormData) => object;
  children?: ComponentChildren;
}

function StartForm({ title, label, path, body, children }: StartFormProps) {
  const [busy, setBusy] = useState(false);
  const [started, setStarted] = useState<Started>();
  const submit = async (e: SubmitEvent) => {
    e.preventDefault();
    const form = new FormData(e.currentTarget as HTMLFormElement);
    setBusy(true);
    setStarted(await startIngestion(path, body(form)));
    setBusy(false);
  };
  return (
    <form onSubmit={(e) => void submit(e)} aria-label={title}>
      <h3>{title}</h3>
      {children}
      <p class="inline">
        <button type="submit" disabled={busy}>
          {label}
        </button>
      </p>
      <div role="status">{started && <StartedLine started={started} />}</div>
    </form>
  );
}

function Field({
  label,
  name,
  value,
  required = true,
  type = "text",
}: {
  label: string;
  name: string;
  value?: string;
  required?: boolean;
  type?: string;
}) {
  return (
    <label class="field">
      <span>{label}</span>
      <input
        type={type}
        name={name}
        required={required}
        defaultValue={value}
        min={0}
        autocomplete="off"
        spellcheck={false}
      />
    </label>
  );
}

const text = (form: FormData, name: string): string => String(form.get(name) ?? "").trim();

function FromSite() {
  return (
    <Panel title="Read from the site">
      <div class="forms">
        <StartForm
          title="Tracks"
          label="Read the list of tracks"
          path="/tracks/sync"
          body={() => ({})}
        >
          <p class="muted">Names of all tracks. No events are read.</p>
        </StartForm>
        <StartForm
          title="Events of a track"
          label="Read its events"
          path="/events/sync"
          body={(f) => ({ track_slug: text(f, "track") })}
        >
          <Field label="Slug of the track, as in its host name" name="track" />
        </StartForm>
        <StartForm
          title="Recent events"
          label="Ingest them"
          path="/events/recent"
          body={(f) => ({
            days: Number(f.get("days")),
            ...(text(f, "tracks") && { tracks: text(f, "tracks") }),
          })}
        >
          <Field label="Days" name="days" type="number" value="7" />
          <Field
            label="Tracks, separated by commas (empty: all)"
            name="tracks"
            required={false}
          />
        </StartForm>
        <StartForm
          title="One event"
          label="Ingest it"
          path="/events/ingest"
          body={(f) => ({
            source_event_id: text(f, "event"),
            track_slug: text(f, "track"),
          })}
        >
          <Field label="Its id at the site" name="event" />
          <Field label="Slug of its track" name="track" />
        </StartForm>
      </div>
    </Panel>
  );
}

// ---- ingestions ---------------------------------------------------------------------------------

function Ingestions() {
  const [state] = useParam("state");
  const live = useList<Run>("/runs", { prefix: PREFIX, state });
  return (
    <List
      label="Ingestions"
      live={live}
      rowKey={(r) => r.id}
      rowHref={(r) => jobHref(r.id)}
      rowTone={(r) => (["FAILED", "TIMEOUT"].includes(r.state) ? "bad" : undefined)}
      empty={
        <Empty title={state ? "No such ingestion" : "No ingestions yet"}>
          Start one with the button of an event, or under{" "}
          <a href={href("/ingestion", {}, { tab: "site" })}>From the site</a>.
        </Empty>
      }
      columns={[
        { title: "Subject", cell: (r) => subjectOf(r.key) },
        { title: "State", cell: (r) => <Badge state={r.state} /> },
        { title: "Stage", cell: (r) => r.stage?.replaceAll("_", " "), wide: true },
        { title: "Started", cell: (r) => <Time at={r.started_at ?? r.created_at} /> },
        { title: "Took", cell: (r) => duration(r.duration_ms), align: "right" },
        { title: "By", cell: (r) => r.trigger, wide: true },
        { title: "Error", cell: (r) => r.error, grow: true, wide: true },
      ]}
    />
  );
}

export function Ingestion() {
  const [tab] = useParam("tab");
  const writes = can("write", "ingest:source");
  const tabs = [
    { id: "events", title: "Events" },
    ...(writes ? [{ id: "site", title: "From the site" }] : []),
    { id: "runs", title: "Ingestions" },
    { id: "drivers", title: "Drivers" },
  ];
  return (
    <>
      <Head title="Ingestion">
        {tab === "" && (
          <>
            <Filter name="search" label="Name, track or id" />
            <Select name="depth" label="Depth" choices={DEPTHS} />
            <Select name="sort" label="Sort" choices={SORTS} />
          </>
        )}
        {tab === "drivers" && <Select name="state" label="State" choices={LINK_STATES} />}
        {tab === "runs" && <Select name="state" label="State" choices={STATES} />}
      </Head>
      <Tabs tabs={tabs} label="Ingestion" />
      {tab === "site" && writes ? (
        <FromSite />
      ) : tab === "runs" ? (
        <Ingestions />
      ) : tab === "drivers" ? (
        <IngestLinks />
      ) : (
        <Events />
      )}
    </>
  );
}
