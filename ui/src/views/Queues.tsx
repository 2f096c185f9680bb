// Queues: how many jobs wait, run and have failed.
import { Badge, Command, Empty, Filter, Head, List, Time, timeAgo } from "../components";
import { age, number } from "../format";
import { useList } from "../live";
import { href, useParam } from "../router";
import type { Queue } from "../types";

const count = (n: number) => (n === 0 ? <span class="muted">0</span> : number(n));

export function Queues() {
  const [prefix] = useParam("prefix");
  const live = useList<Queue>("/queues", { prefix });
  return (
    <>
      <Head title="Queues">
        <Filter name="prefix" label="Name starts with" />
      </Head>
      <List
        label="Queues"
        live={live}
        rowKey={(q) => q.name}
        rowHref={(q) => href("/queues/:queue", { queue: q.name })}
        rowTone={(q) => (q.failed > 0 ? "bad" : q.paused ? "warn" : undefined)}
        empty={
          prefix !== "" ? (
            <Empty title="No matching queues">Clear the filter to see all.</Empty>
          ) : (
            <Empty title="No queues">
              The first job creates its queue:
              <Command>{`interlock queue push mail '{"to": "ann@example.org"}'`}</Command>
            </Empty>
          )
        }
        columns={[
          { title: "Queue", cell: (q) => q.name, grow: true },
          {
            title: "State",
            cell: (q) => (
              <Badge state={q.paused ? "paused" : "open"} title={q.reason ?? undefined} />
            ),
          },
          { title: "Ready", cell: (q) => count(q.ready), align: "right" },
          {
            title: "Oldest",
            cell: (q) =>
              q.ready > 0 ? <Time at={timeAgo(q.oldest_ms)}>{age(q.oldest_ms)}</Time> : "–",
            align: "right",
            wide: true,
          },
          { title: "Running", cell: (q) => count(q.running), align: "right" },
          { title: "Scheduled", cell: (q) => count(q.scheduled), align: "right", wide: true },
          {
            title: "Failed",
            cell: (q) => (q.failed > 0 ? <Badge state={number(q.failed)} tone="bad" /> : count(0)),
            align: "right",
          },
          {
            title: "Completed",
            cell: (q) => number(q.totals.completed),
            align: "right",
            wide: true,
          },
          { title: "Workers", cell: (q) => count(q.workers), align: "right", wide: true },
        ]}
      />
    </>
  );
}
