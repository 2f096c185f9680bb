// Responses of the server that several views use. Times are RFC 3339, durations in ms.

export interface Lease {
  key: string;
  tenant: string;
  holder: string;
  fence: number;
  mode: "exclusive" | "shared" | "permit";
  acquired_at: string | null;
  expires_at: string | null;
  age_ms: number;
  ttl_ms: number;
  waiters: number;
  meta: unknown;
  state: string;
  permits: number;
  place: string;
  reason: string | null;
  /** Since the last renewal. */
  renewed_ms: number;
  remaining_ms: number | null;
}

export interface Waiter extends Omit<Lease, "acquired_at" | "expires_at" | "fence"> {
  ticket: number;
  queued_at: string | null;
  gives_up_at: string | null;
}

export interface Why {
  key: string;
  state: string;
  free_in_ms: number;
  leases: Lease[];
  waiters: Waiter[];
}

/** One edge of the learned lock order. */
export interface OrderEdge {
  from: string;
  to: string;
  from_place: string;
  to_place: string;
  inverted: boolean;
  declared: boolean;
}

export type RunState =
  "PENDING" | "RUNNING" | "COMPLETED" | "FAILED" | "CANCELLED" | "TIMEOUT" | "INTERRUPTED";

export interface Run {
  id: string;
  key: string;
  state: RunState;
  trigger: string | null;
  by: string | null;
  stage: string | null;
  progress: number | null;
  error: string | null;
  holder: string | null;
  meta: unknown;
  cancelled: boolean;
  joined: number;
  position: number;
  log_bytes: number;
  fence: number | null;
  created_at: string;
  started_at: string | null;
  ended_at: string | null;
  updated_at: string | null;
  duration_ms: number | null;
  ttl_ms: number;
  remaining_ms: number;
}

export interface Queue {
  name: string;
  paused: boolean;
  reason: string | null;
  workers: number;
  scheduled: number;
  ready: number;
  running: number;
  failed: number;
  oldest_ms: number;
  totals: {
    pushed: number;
    claimed: number;
    completed: number;
    failed_attempts: number;
    failed: number;
    snoozed: number;
    cancelled: number;
    recovered: number;
    duplicates: number;
    stale: number;
  };
  settings: {
    strategy: string;
    max_attempts: number;
    lease_ms: number;
    backoff_ms: number;
    backoff_max_ms: number;
    group_limit: number | null;
    rate_n: number | null;
    rate_ms: number;
    keep_ms: number | null;
    keep_failed_ms: number | null;
  };
}

export type JobState = "SCHEDULED" | "READY" | "RUNNING" | "COMPLETED" | "FAILED" | "CANCELLED";

export interface Job {
  id: string;
  queue: string;
  state: JobState;
  attempt: number;
  max_attempts: number;
  priority: number;
  run_at: string | null;
  error: string | null;
  progress: number | null;
  message: string | null;
  group: string | null;
  unique_key: string | null;
  parent: string | null;
  worker: string | null;
  cancelled: boolean;
  children: { total: number; completed: number; failed: number } | null;
  payload: unknown;
  payload_base64?: string;
  payload_bytes: number | null;
  result: unknown;
  result_base64?: string;
  result_bytes: number | null;
  created_at: string;
  started_at: string | null;
  completed_at: string | null;
  updated_at: string | null;
  remaining_ms: number;
}
