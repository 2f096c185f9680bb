// How leases are shown in the lists of locks and runs, and on the overview.
import { Bar, type Column, Time, timeAgo, type Tone } from "./components";
import { age, duration, exact } from "./format";
import type { Waiter } from "./types";

interface Timed {
  remaining_ms: number | null;
  ttl_ms: number;
}

/** Less than a fifth of the TTL is left, as in GET /overview: holders renew long before. */
export const isExpiring = (l: Timed): boolean =>
  l.remaining_ms !== null && l.remaining_ms < l.ttl_ms / 5;

export function TimeLeft({ of, label = "Time left of the lease" }: { of: Timed; label?: string }) {
  if (of.remaining_ms === null) return <span class="muted">no limit</span>;
  const share = of.ttl_ms > 0 ? of.remaining_ms / of.ttl_ms : 0;
  const tone: Tone = isExpiring(of) ? "bad" : share < 0.4 ? "warn" : "busy";
  return (
    <Bar
      share={share}
      text={duration(Math.max(0, of.remaining_ms))}
      label={label}
      tone={tone}
      title={exact(timeAgo(-of.remaining_ms))}
    />
  );
}

/** The beginning and the deadline of a wait. */
export const waitingTimes: Column<Waiter>[] = [
  {
    title: "For",
    cell: (w) => <Time at={w.queued_at}>{age(w.age_ms)}</Time>,
    align: "right",
  },
  { title: "Gives up", cell: (w) => <Time at={w.gives_up_at} none="never" />, align: "right" },
];
