// Stored usage, day by day. Every read is one with ?build=no, so that looking never fetches a day.
// Days that are kept for good are read once; the others again after a while, because reads count in
// the hit rate that the view shows.
import { ApiError, get } from "../api";
import { sessionState } from "../session";

export const METRICS = [
  "api_requests",
  "successful_requests",
  "failed_requests",
  "total_tokens",
  "prompt_tokens",
  "completion_tokens",
  "spend_micros",
] as const;
export type Metric = (typeof METRICS)[number];
export type Metrics = Record<Metric, number>;
export type Part = Metrics & { name: string };

export interface StoredDay {
  date: string;
  is_complete: boolean;
  updated_at: string | null;
  metrics: Metrics;
  by_user: Part[];
  by_model: Part[];
  by_provider: Part[];
  stale: boolean;
  error?: string;
}

export interface Day {
  date: string;
  state: "fresh" | "stale" | "missing";
  stored: StoredDay | null;
}

const REREAD_MS = 20_000;
const AT_ONCE = 4; /* reads; a browser has six connections to a server */
const DAY_MS = 86_400_000;

// By tenant and date: another key may sign in.
const known = new Map<string, { day: Day; at: number }>();

function keyOf(date: string): string {
  const now = sessionState.get();
  return `${now.state === "in" ? now.session.tenant : ""} ${date}`;
}

/** Reads all days again at the next look: after a refresh or a rebuild. */
export function forgetDays(): void {
  known.clear();
}

/** A day of UTC, `back` days before now. */
export const dayBefore = (now: number, back: number): string =>
  new Date(now - back * DAY_MS).toISOString().slice(0, 10);

/** The `n` days up to `last`, oldest first. */
export function daysUpTo(last: string, n: number): string[] {
  const end = Date.parse(`${last}T00:00:00Z`);
  return Array.from({ length: n }, (_, i) => dayBefore(end, n - 1 - i));
}

async function readDay(date: string, signal: AbortSignal): Promise<Day> {
  try {
    const stored = await get<StoredDay>(`/admin/usage/days/${date}?build=no`, signal);
    return { date, state: stored.stale ? "stale" : "fresh", stored };
  } catch (e) {
    if (e instanceof ApiError && e.code === "USAGE_DAY_NOT_FOUND") return { date, state: "missing", stored: null };
    throw e;
  }
}

async function day(date: string, signal: AbortSignal): Promise<Day> {
  const key = keyOf(date);
  const found = known.get(key);
  const keeps = found?.day.state === "fresh" && found.day.stored?.is_complete;
  if (found && (keeps || Date.now() - found.at < REREAD_MS)) return found.day;
  const read = await readDay(date, signal);
  known.set(key, { day: read, at: Date.now() });
  return read;
}

/** All of these days, in order. */
export async function readDays(dates: string[], signal: AbortSignal): Promise<Day[]> {
  const days: Day[] = [];
  let next = 0;
  const reader = async () => {
    for (let i = next++; i < dates.length; i = next++) days[i] = await day(dates[i]!, signal);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, reader));
  return days;
}

const nothing = (): Metrics => Object.fromEntries(METRICS.map((m) => [m, 0])) as Metrics;

function addTo(sum: Metrics, more: Metrics): void {
  for (const m of METRICS) sum[m] += more[m];
}

/** The sums of the days that are stored. */
export function total(days: Day[]): Metrics {
  const sum = nothing();
  for (const d of days) if (d.stored) addTo(sum, d.stored.metrics);
  return sum;
}

export type By = "by_user" | "by_model" | "by_provider";

/** The sums by name, the largest spend first. */
export function totalBy(days: Day[], by: By): Part[] {
  const sums = new Map<string, Part>();
  for (const part of days.flatMap((d) => d.stored?.[by] ?? [])) {
    const sum = sums.get(part.name) ?? { name: part.name, ...nothing() };
    addTo(sum, part);
    sums.set(part.name, sum);
  }
  return [...sums.values()].sort((a, b) => b.spend_micros - a.spend_micros || (a.name < b.name ? -1 : 1));
}
