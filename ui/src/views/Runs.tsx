// Runs: their triggers, states and outcomes.
import { Badge, Bar, Empty, Filter, Head, List, Select, Time } from "../components";
import { duration } from "../format";
import { useList } from "../live";
import { href, useParam } from "../router";
import type { Run } from "../types";
import { useKeyNames, Who } from "./Who";

const STATES = [
  { value: "", title: "any state" },
  { value: "RUNNING", title: "running" },
  { value: "PENDING", title: "pending" },
  { value: "FAILED,TIMEOUT,INTERRUPTED", title: "failed" },
  { value: "COMPLETED", title: "completed" },
  { value: "CANCELLED", title: "cancelled" },
];

export function Progress({
  of,
}: {
  of: { stage: string | null; progress: number | null; state: string };
}) {
  if (of.state !== "RUNNING") return <span class="muted">{of.stage ?? ""}</span>;
  if (of.progress === null) return <span>{of.stage ?? ""}</span>;
  return <Bar share={of.progress / 100} text={of.stage ?? `${of.progress} %`} label="Progress" />;
}

export function Runs() {
  const [prefix] = useParam("prefix");
  const [key, setKey] = useParam("key");
  const [state] = useParam("state");
  const names = useKeyNames();
  const live = useList<Run>("/runs", { state, ...(key === "" ? { prefix } : { key }) });
  return (
    <>
      <Head title="Runs">
        {key !== "" && (
          <button
            type="button"
            onClick={() => setKey("")}
            aria-label={`Show runs of all keys, not only ${key}`}
          >
            Key: {key} ×
          </button>
        )}
        <Select name="state" label="State" choices={STATES} />
        {key === "" && <Filter name="prefix" label="Key starts with" />}
      </Head>
      <List
        label="Runs"
        live={live}
        rowKey={(r) => r.id}
        rowHref={(r) => href("/runs/:id", { id: r.id })}
        empty={
          prefix !== "" || key !== "" || state !== "" ? (
            <Empty title="No matching runs">
              Clear the filter to see all runs.
            </Empty>
          ) : (
            <Empty title="Nothing has run yet">
              Runs are recorded by <code>interlock run --record</code>, by pipelines, ingestions and
              checks, and by <code>POST /api/v1/runs</code>.
            </Empty>
          )
        }
        columns={[
          { title: "Key", cell: (r) => r.key, grow: true },
          {
            title: "State",
            cell: (r) => (
              <Badge
                state={r.cancelled && r.state === "RUNNING" ? "cancelling" : r.state}
                title={r.error ?? undefined}
              />
            ),
          },
          { title: "Stage", cell: (r) => <Progress of={r} />, wide: true },
          { title: "Trigger", cell: (r) => r.trigger ?? "–", wide: true },
          {
            title: "By",
            cell: (r) => <Who who={r.by} names={names} />,
            wide: true,
          },
          {
            title: "Joined",
            cell: (r) => (r.joined > 0 ? r.joined : ""),
            align: "right",
            wide: true,
          },
          {
            title: "Started",
            cell: (r) => <Time at={r.started_at ?? r.created_at} />,
            align: "right",
          },
          { title: "Took", cell: (r) => duration(r.duration_ms), align: "right", wide: true },
        ]}
      />
    </>
  );
}
