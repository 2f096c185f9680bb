// Actions on usage: fetching, refreshing, rebuilding and exporting days.
import { useEffect } from "preact/hooks";
import { act } from "../act";
import { send } from "../api";
import { Badge, Bar, confirm, Time } from "../components";
import { plural, shortId } from "../format";
import { type Page, useLive } from "../live";
import { href } from "../router";
import { can } from "../session";
import { download, exportPath } from "./download";
import { type Day, forgetDays } from "./usage_days";

const RUN_KEY = "usage:rebuild";

interface RebuildRun {
  id: string;
  state: string;
  progress: number | null;
  stage: string | null;
  error: string | null;
  created_at: string | null;
  ended_at: string | null;
}

function askRebuild(days: Day[]): void {
  const from = days[0]?.date ?? "";
  const to = days[days.length - 1]?.date ?? "";
  confirm({
    title: "Rebuild days",
    text: "The days are fetched from the source in the background, one run at a time.",
    label: "Rebuild",
    fields: (
      <>
        <label class="field">
          <span>First day (UTC)</span>
          <input type="date" name="from" required defaultValue={from} max={to} />
        </label>
        <label class="field">
          <span>Last day (UTC)</span>
          <input type="date" name="to" required defaultValue={to} max={to} />
        </label>
        <label class="check">
          <input type="checkbox" name="force" /> Also complete days
        </label>
      </>
    ),
    run: async (_, form) => {
      const body = {
        startDate: form.get("from"),
        endDate: form.get("to"),
        force: form.get("force") !== null,
      };
      await send("POST", "/admin/usage/rebuild-cache", body);
      return "Rebuild started";
    },
  });
}

async function fetchMissing(days: Day[]): Promise<void> {
  const range = { startDate: days[0]?.date, endDate: days[days.length - 1]?.date };
  const late = (a: { pending: string[]; missing: string[] }) => a.pending.length + a.missing.length;
  await act<{ pending: string[]; missing: string[] }>(
    "POST",
    "/admin/usage/analytics",
    range,
    (a) => {
      forgetDays();
      return late(a) === 0
        ? "All days are stored"
        : `${plural(late(a), "day")} pending or not available`;
    },
  );
}

async function refreshToday(): Promise<void> {
  await act("POST", "/admin/usage/refresh-today", undefined, () => {
    forgetDays();
    return "Fetched today's usage";
  });
}

export function UsageButtons({ days }: { days: Day[] }) {
  const old = days.filter((d) => d.state !== "fresh").length;
  const writes = can("admin:usage:write");
  return (
    <>
      {old > 0 && (
        <button
          type="button"
          title="Fetches missing and stale days from the source"
          onClick={() => void fetchMissing(days)}
        >
          Fetch {plural(old, "day")}
        </button>
      )}
      {writes && (
        <button type="button" onClick={() => void refreshToday()}>
          Refresh today
        </button>
      )}
      {writes && (
        <button type="button" onClick={() => askRebuild(days)}>
          Rebuild…
        </button>
      )}
      <button
        type="button"
        title="Missing days are fetched first"
        onClick={() => void download(exportPath(days), "usage.csv")}
      >
        Export CSV
      </button>
    </>
  );
}

/** The last rebuild; when it ends, the days are read again. */
export function LastRebuild() {
  const { data } = useLive<Page<RebuildRun>>("/runs", { key: RUN_KEY, limit: 1 });
  const run = data?.items[0];
  const ended = run?.ended_at;
  useEffect(() => {
    if (ended) forgetDays();
  }, [ended]);
  if (!run) return null;
  return (
    <p class="inline">
      <span>Last rebuild:</span>
      <a href={href("/runs/:id", { id: run.id })}>{shortId(run.id)}</a>
      <Badge state={run.state} title={run.error ?? undefined} />
      {ended ? (
        <Time at={ended} />
      ) : (
        <Bar
          share={(run.progress ?? 0) / 100}
          text={run.stage ?? `${run.progress ?? 0} %`}
          label="Progress of the rebuild"
        />
      )}
    </p>
  );
}
