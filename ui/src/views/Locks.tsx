// Locks: who holds what, for how long, and who waits.
import {
  Badge,
  Check,
  Copyable,
  Empty,
  Filter,
  Head,
  List,
  Tabs,
  Time,
  timeAgo,
} from "../components";
import { age, number } from "../format";
import { isNearEnd, TimeLeft, waitingTimes } from "../leases";
import { type Live, type Page, readPage, useList, useLoad } from "../live";
import { href, useParam } from "../router";
import type { Lease, Waiter } from "../types";

const COUNTED = 1000; /* of GET /overview, whose numbers lead here */

const lockHref = (l: { key: string }) => href("/locks/:key", { key: l.key });

/** Leases near their end: the server does not filter by it, so the first 1,000 are looked through. */
function useNearEnd(prefix: string, when: boolean): Live<Page<Lease>> {
  const load = async (signal: AbortSignal) => {
    const page = await readPage<Lease>("/locks", { prefix }, COUNTED, signal);
    return { items: page.items.filter((l) => l.state === "held" && isNearEnd(l)), next: null };
  };
  return useLoad(`near-end ${prefix}`, load, { when });
}

function Leases() {
  const [prefix] = useParam("prefix");
  const [ending] = useParam("ending");
  const all = useList<Lease>("/locks", { prefix }, 50, { when: ending === "" });
  const near = useNearEnd(prefix, ending !== "");
  return (
    <List
      label="Locks"
      live={ending === "" ? all : near}
      rowKey={(l) => `${l.key} ${l.fence}`}
      rowHref={lockHref}
      rowTone={(l) => (isNearEnd(l) ? "bad" : undefined)}
      empty={
        prefix !== "" || ending !== "" ? (
          <Empty title="No lock matches">
            Locks appear here when they match the filter. Clear it to see all.
          </Empty>
        ) : (
          <Empty title="Nothing is locked">
            A lock appears here as soon as a program takes one: with <code>interlock run</code>, the
            library, or <code>POST /api/v1/locks/acquire</code>.
          </Empty>
        )
      }
      columns={[
        { title: "Key", cell: (l) => l.key, grow: true },
        { title: "Holder", cell: (l) => <Copyable value={l.holder} label="holder" />, wide: true },
        {
          title: "State",
          cell: (l) => <Badge state={l.mode === "exclusive" ? l.state : `${l.state} ${l.mode}`} />,
        },
        {
          title: "Age",
          cell: (l) => <Time at={l.acquired_at}>{age(l.age_ms)}</Time>,
          align: "right",
          wide: true,
        },
        {
          title: "Renewed",
          cell: (l) => <Time at={timeAgo(l.renewed_ms)} />,
          align: "right",
          wide: true,
        },
        { title: "Time left", cell: (l) => <TimeLeft of={l} /> },
        { title: "Waiting", cell: (l) => (l.waiters > 0 ? number(l.waiters) : ""), align: "right" },
      ]}
    />
  );
}

function Waiting() {
  const [prefix] = useParam("prefix");
  const live = useList<Waiter>("/locks", { prefix, waiters: true });
  return (
    <List
      label="Waiters"
      live={live}
      rowKey={(w) => `${w.key} ${w.ticket}`}
      rowHref={lockHref}
      empty={
        <Empty title="Nobody waits">
          Callers that wait for a key appear here, in the order in which they are served.
        </Empty>
      }
      columns={[
        { title: "Key", cell: (w) => w.key, grow: true },
        { title: "Who waits", cell: (w) => <Copyable value={w.holder} label="holder" /> },
        { title: "Mode", cell: (w) => w.mode, wide: true },
        ...waitingTimes,
      ]}
    />
  );
}

export function Locks() {
  const [tab] = useParam("tab");
  return (
    <>
      <Head title="Locks">
        {tab === "" && <Check name="ending" label="near their end" />}
        <Filter name="prefix" label="Key starts with" />
      </Head>
      <Tabs
        label="Kind"
        tabs={[
          { id: "held", title: "Held" },
          { id: "waiting", title: "Waiting" },
        ]}
      />
      {tab === "waiting" ? <Waiting /> : <Leases />}
    </>
  );
}
