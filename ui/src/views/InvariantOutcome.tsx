// Reading invariants, the outcome of one, and running them now: shared by the list, the single view
// and the overview.
import { useState } from "preact/hooks";
import { act } from "../act";
import { get } from "../api";
import { Badge, type Tone } from "../components";
import { plural } from "../format";
import { type Page, useLive } from "../live";
import { queryString } from "../router";
import type { Check, CheckResult, ChecksStarted } from "./check_types";

const TONES: Record<CheckResult["outcome"], Tone> = {
  passed: "ok",
  broken: "bad",
  error: "warn",
  skipped: "idle",
  not_run: "idle",
};

const WORDS: Partial<Record<CheckResult["outcome"], string>> = {
  error: "could not run",
  not_run: "not run yet",
};

export function toneOfResult(result: CheckResult): Tone {
  return result.outcome === "broken" && result.severity !== "error"
    ? "warn"
    : TONES[result.outcome];
}

/** The outcome of a result; an invariant with an invalid definition could not run, either. */
export function Outcome({
  of,
  invalid,
}: {
  of: CheckResult | null;
  invalid?: string | null | undefined;
}) {
  if (invalid) return <Badge state="invalid" tone="bad" title={invalid} />;
  if (!of) return <Badge state="not run yet" tone="idle" />;
  return (
    <Badge
      state={WORDS[of.outcome] ?? of.outcome}
      tone={toneOfResult(of)}
      title={of.error ?? undefined}
    />
  );
}

/** "31 new, 1 known" */
export function found(result: CheckResult): string {
  if (result.error) return result.error;
  const parts = [
    result.new > 0 && `${plural(result.new, "new offender")}`,
    result.known > 0 && `${plural(result.known, "known one")}`,
  ];
  return parts.filter(Boolean).join(", ");
}

/** Problems first: broken errors, broken warnings, those that could not run, the others. */
export function urgency(check: Check): number {
  if (check.error) return 0;
  const last = check.last;
  if (!last) return 4;
  if (last.outcome === "broken") return last.severity === "error" ? 1 : 2;
  return last.outcome === "error" ? 3 : 5;
}

export const isProblem = (check: Check): boolean => urgency(check) < 4;

const PAGE = 100;
const PAGES_MAX = 5;

/** All invariants: the server has them by name, the page shows the broken ones first. */
export async function readChecks(signal: AbortSignal): Promise<Page<Check>> {
  const all: Page<Check> = { items: [], next: null };
  for (let pages = 0; pages < PAGES_MAX; pages++) {
    const page = await get<Page<Check>>(
      `/checks${queryString({ limit: PAGE, cursor: all.next })}`,
      signal,
    );
    all.items.push(...page.items);
    all.next = page.next;
    if (page.next === null) break;
  }
  return all;
}

interface LiveRun {
  key: string;
}

/** The names of the invariants that are being checked. */
export function useChecking(): Set<string> {
  const { data } = useLive<Page<LiveRun>>("/runs", {
    prefix: "check:",
    state: "PENDING,RUNNING",
    limit: 1000,
  });
  return new Set(data?.items.map((r) => r.key.slice("check:".length)));
}

interface RunNowProps {
  /** Which invariants; all of the tenant by default. */
  names?: string[];
  label: string;
  checking: boolean;
}

/** Starts checks. A check in progress is not started again. */
export function RunNow({ names, label, checking }: RunNowProps) {
  const [busy, setBusy] = useState(false);
  const run = async () => {
    setBusy(true);
    await act<ChecksStarted>("POST", "/checks/run", names ? { names } : {}, (started) => {
      const bad = started.items.filter((i) => i.run_id === null).length;
      return `${plural(started.items.length - bad, "check")} started${bad > 0 ? `, ${bad} invalid` : ""}`;
    });
    setBusy(false);
  };
  return (
    <button type="button" disabled={busy || checking} onClick={() => void run()}>
      {checking ? "Checking…" : label}
    </button>
  );
}
