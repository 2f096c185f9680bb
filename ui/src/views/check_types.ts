// Responses of the routes of invariants: the fields that the views use.
export interface CheckResult {
  id: string;
  name: string;
  severity: string | null;
  outcome: "passed" | "broken" | "error" | "skipped" | "not_run";
  new: number;
  known: number;
  offenders: { key: string; text: string }[];
  not_needed: { count: number; keys: string[] };
  runs: string[];
  failed: boolean;
  error: string | null;
  started_at: string | null;
  duration_ms: number;
}

export interface Check {
  name: string;
  severity: string;
  description: string;
  connection: string | null;
  schedule: string;
  timezone: string;
  next_at: string | null;
  timeout_ms: number;
  baseline: number;
  path: string | null;
  error: string | null;
  last: CheckResult | null;
}

export interface ChecksStarted {
  items: { name: string; run_id: string | null; error: string | null }[];
}
