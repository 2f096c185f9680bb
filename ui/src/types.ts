// What the server answers, as far as several views use it. Times are RFC 3339, durations in ms.

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
