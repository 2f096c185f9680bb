// Spans of time, as bars on a common scale.
import { clockSkew } from "../api";
import { duration, exact } from "../format";
import { useNow } from "../live";
import { Badge, toneOf } from "./Badge";

export interface Span {
  state: string;
  start: string | null;
  /** Null while it lasts. */
  end: string | null;
  title?: string | undefined;
}

export interface TimelineRow {
  id: string;
  title: string;
  note?: string | undefined;
  state: string;
  /** One bar each: the attempts of a step. */
  spans: Span[];
  duration_ms: number | null;
}

const ms = (iso: string): number => Date.parse(iso);

export function Timeline({ label, rows }: { label: string; rows: TimelineRow[] }) {
  const now = useNow() + clockSkew;
  const spans = rows.flatMap((r) => r.spans).filter((s) => s.start !== null);
  const from = Math.min(...spans.map((s) => ms(s.start ?? "")));
  const to = Math.max(from + 1, ...spans.map((s) => (s.end === null ? now : ms(s.end))));
  const at = (iso: string | null) => (100 * ((iso === null ? now : ms(iso)) - from)) / (to - from);
  return (
    <ol class="timeline" aria-label={label}>
      {rows.map((row) => (
        <li key={row.id}>
          <span class="timeline-name">
            <b title={row.title}>{row.title}</b>
            {row.note !== undefined && <span class="muted"> {row.note}</span>}
          </span>
          <Badge state={row.state} />
          <span class="timeline-track" aria-hidden="true">
            {row.spans.map(
              (s, i) =>
                s.start !== null && (
                  <span
                    key={i}
                    class={`timeline-span ${toneOf(s.state)}`}
                    title={`${s.title ?? s.state}: ${exact(s.start)}`}
                    style={{
                      left: `${at(s.start)}%`,
                      width: `${Math.max(0.4, at(s.end) - at(s.start))}%`,
                    }}
                  />
                ),
            )}
          </span>
          <span class="timeline-took">{duration(row.duration_ms)}</span>
        </li>
      ))}
    </ol>
  );
}
