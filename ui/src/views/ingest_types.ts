// What the routes of ingestions answer, as far as the views use it.
export interface EventRow {
  id: string;
  source_event_id: string;
  track_slug: string;
  track_name: string | null;
  name: string;
  club: string | null;
  meet: string | null;
  first_day: string | null;
  last_day: string | null;
  n_entries: number | null;
  n_drivers: number | null;
  n_laps: number | null;
  n_races: number;
  ingest_depth: string;
  complete: boolean;
  last_ingested_at: string | null;
}

export interface Race {
  id: string;
  order: number | null;
  class_name: string;
  label: string;
  section: string | null;
  session_type: string;
  completed_at: string | null;
  length: string | null;
  has_laps: boolean;
  n_results: number;
}

export interface EventFull extends EventRow {
  races: Race[];
}

export interface Stage {
  stage: string;
  label: string;
  status: string;
  started_at: string | null;
  duration_ms: number | null;
  rows: Record<string, Record<string, number>> | null;
}

export interface Ingestion {
  job_id: string;
  kind: string;
  status: string;
  cancelling: boolean;
  stage: string | null;
  stage_label: string | null;
  progress: { percent: number | null; done: number | null; total: number | null } | null;
  queue_position: number;
  source_event_id: string | null;
  track_slug: string | null;
  event_id: string | null;
  trigger_type: string | null;
  trigger_by: string | null;
  created_at: string | null;
  started_at: string | null;
  ended_at: string | null;
  duration_ms: number | null;
  timeline: Stage[];
  result: Record<string, unknown> | null;
  error: { code: string; message: string; details: Record<string, unknown> } | null;
}

/** A run as GET /runs lists it. */
export interface Run {
  id: string;
  key: string;
  state: string;
  stage: string | null;
  progress: number | null;
  position: number;
  error: string | null;
  trigger: string | null;
  by: string | null;
  created_at: string | null;
  started_at: string | null;
  ended_at: string | null;
  duration_ms: number | null;
}

export const PREFIX = "ingest:";
export const keyOf = (sourceEventId: string): string => `${PREFIX}liverc:${sourceEventId}`;

/** What a run reads, as its key says: "event 100000", "events of hilltoprc". */
export function subjectOf(key: string): string {
  const [, kind = "", ...rest] = key.split(":");
  const what = rest.join(":");
  if (kind === "liverc") return `event ${what}`;
  if (kind === "events") return `events of ${what}`;
  if (kind === "tracks") return "all tracks";
  return `${kind} ${what}`.trim();
}
