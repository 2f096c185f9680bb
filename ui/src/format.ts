// How numbers, durations and times are written.

const numbers = new Intl.NumberFormat("en-US");
const tenths = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1 });

/** A count that the server bounds: `more` says that there are more than n. */
export interface Few {
  n: number;
  more: boolean;
}

export const number = (n: number): string => numbers.format(n);

/** "over 1,000", which is as far as the server counts; "3+" if it stopped earlier. */
export function few(f: Few): string {
  if (!f.more) return number(f.n);
  return f.n < 1000 ? `${number(f.n)}+` : `over ${number(f.n)}`;
}

export const percent = (part: number, whole: number): string =>
  whole === 0 ? "–" : `${tenths.format((100 * part) / whole)} %`;

export function bytes(n: number): string {
  if (n < 1024) return `${n} B`;
  if (n < 1024 * 1024) return `${tenths.format(n / 1024)} KiB`;
  return `${tenths.format(n / 1024 / 1024)} MiB`;
}

const UNITS: [number, string][] = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "min"],
  [1000, "s"],
];

/** A duration with at most two units: 850 ms, 4.2 s, 3 min 5 s, 2 d 4 h. */
export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return "–";
  if (ms < 0) return `-${duration(-ms)}`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${tenths.format(ms / 1000)} s`;
  const at = UNITS.findIndex(([size]) => ms >= size);
  const [size, unit] = UNITS[at] ?? [1000, "s"];
  const below = UNITS[at + 1];
  const whole = Math.floor(ms / size);
  const rest = below ? Math.floor((ms % size) / below[0]) : 0;
  return below && rest > 0 && whole < 100
    ? `${whole} ${unit} ${rest} ${below[1]}`
    : `${whole} ${unit}`;
}

const MINUTE_MS = 60_000;

/** How long something has lasted: whole seconds, whole minutes after the first one. */
export function age(ms: number): string {
  if (ms < 1000) return "0 s";
  const unit = ms < MINUTE_MS ? 1000 : MINUTE_MS;
  return duration(Math.trunc(ms / unit) * unit);
}

/** A time relative to now: "just now", "5 min ago", "in 2 h 10 min". */
export function relative(at: number, now: number): string {
  const away = at - now;
  if (Math.abs(away) < 1000) return "just now";
  return away < 0 ? `${age(-away)} ago` : `in ${age(away)}`;
}

const exactFormat = new Intl.DateTimeFormat("en-GB", {
  dateStyle: "medium",
  timeStyle: "long",
});

/** The time in the reader's time zone, then as the API writes it. */
export const exact = (iso: string): string => `${exactFormat.format(new Date(iso))} · ${iso}`;

/** "1 job", "2 jobs". */
export const plural = (n: number, one: string, many = `${one}s`): string =>
  `${number(n)} ${n === 1 ? one : many}`;

/** The end of an id: ids of the same minute begin alike. */
export const shortId = (id: string): string => (id.length > 12 ? `…${id.slice(-8)}` : id);
