// Locks: holders and their leases, and waiters.
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
import { isExpiring, TimeLeft, waitingTimes } from "../leases";
import { type Live, type Page, readPage, useList, useLoad } from "../live";
import { href, useParam } from "../router";
import type { Lease, Waiter } from "../types";

const COUNTED = 1000; /* of GET /overview, whose numbers lead here */

const lockHref = (l: { key: string }) => href("/locks/:key", { key: l.key });

/** Leases that expire soon: the server has no such filter, so the first 1,000 are searched. */
function useExpiring(prefix: string, when: boolean): Live<Page<Lease>> {
  const load = async (signal: AbortSignal) => {
    const page = await readPage<Lease>("/locks", { prefix }, COUNTED, signal);
    return { items: page.items.filter((l) => l.state === "held" && isExpiring(l)), next: null };
  };
  return useLoad(`expiring ${prefix}`, load, { when });
}

function Leases() {
  const [prefix] = useParam("prefix");
  const [only] = useParam("expiring");
  const all = useList<Lease>("/locks", { prefix }, 50, { when: only === "" });
  const expiring = useExpiring(prefix, only !== "");
  return (
    <List
      label="Locks"
      live={only === "" ? all : expiring}
      rowKey={(l) => `${l.key} ${l.fence}`}
      rowHref={lockHref}
      rowTone={(l) => (isExpiring(l) ? "bad" : undefined)}
      empty={
        prefix !== "" || only !== "" ? (
          <Empty title="No matching locks">
            Clear the filter to see all locks.
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
        <Empty title="No waiters">
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
        {tab === "" && <Check name="expiring" label="expiring soon" />}
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
