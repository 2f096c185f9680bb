// The learned lock order: which class of keys is acquired while another is held. Classes acquired
// in opposite orders can deadlock, and are red.
import {
  Badge,
  Check,
  Empty,
  ErrorBox,
  Filter,
  Graph,
  Head,
  Loading,
  Panel,
  Table,
  type Node,
} from "../components";
import { plural } from "../format";
import { readPage, useLoad } from "../live";
import { useParam } from "../router";
import type { OrderEdge } from "../types";

const DRAWN = 1000;

const placeOf = (place: string) =>
  place === "" ? <span class="muted">unknown</span> : <code>{place}</code>;

const says = (e: OrderEdge): string =>
  `${e.to} was acquired while ${e.from} was held` +
  (e.from_place || e.to_place ? ` (${e.from_place || "?"}, then ${e.to_place || "?"})` : "");

function nodesOf(edges: OrderEdge[]): Node[] {
  const inverted = new Set(edges.filter((e) => e.inverted).flatMap((e) => [e.from, e.to]));
  const names = new Set(edges.flatMap((e) => [e.from, e.to]));
  return [...names].map((id) => ({ id, tone: inverted.has(id) ? "bad" : "idle" }));
}

function Edges({ edges }: { edges: OrderEdge[] }) {
  return (
    <Table
      label="Edges of the lock order"
      rows={edges}
      rowKey={(e) => `${e.from}\n${e.to}`}
      rowTone={(e) => (e.inverted ? "bad" : undefined)}
      columns={[
        { title: "Held", cell: (e) => e.from },
        { title: "Held, acquired at", cell: (e) => placeOf(e.from_place) },
        { title: "Acquired next", cell: (e) => e.to },
        { title: "Acquired at", cell: (e) => placeOf(e.to_place) },
        {
          title: "Result",
          cell: (e) => (
            <Badge
              state={e.inverted ? "can deadlock" : e.declared ? "declared" : "learned"}
              tone={e.inverted ? "bad" : "idle"}
            />
          ),
        },
      ]}
    />
  );
}

export function LockOrder() {
  const [prefix] = useParam("prefix");
  const [only] = useParam("inverted");
  const { data, error, loading } = useLoad(`order ${prefix}`, (s) =>
    readPage<OrderEdge>("/locks/order", { prefix }, DRAWN, s),
  );
  const edges = (data?.items ?? []).filter((e) => only === "" || e.inverted);
  const inverted = edges.filter((e) => e.inverted);
  return (
    <>
      <Head title="Lock order">
        <Check name="inverted" label="inversions only" />
        <Filter name="prefix" label="Class starts with" />
      </Head>
      <ErrorBox error={error} title="Cannot read the lock order" />
      {loading && <Loading />}
      {data && edges.length === 0 && (
        <Empty title={only === "" ? "No order has been learned" : "No inversions"}>
          {only === ""
            ? "An edge appears when a unit of work acquires a key while it holds another. The class of a key is the part before its first colon."
            : "No two classes are acquired in opposite orders."}
        </Empty>
      )}
      {edges.length > 0 && (
        <>
          {inverted.length > 0 && (
            <div class="error-box" role="alert">
              <p>
                <strong>{plural(inverted.length, "edge")} on a cycle.</strong> Programs acquire
                these classes in opposite orders, which can deadlock. Change one of the two places,
                or acquire both keys at once.
              </p>
            </div>
          )}
          <Panel title="Graph">
            <Graph
              label="Lock order: an arrow points from the held class to the one acquired next"
              nodes={nodesOf(edges)}
              edges={edges.map((e) => ({
                from: e.from,
                to: e.to,
                tone: e.inverted ? "bad" : "idle",
                title: says(e),
              }))}
            />
          </Panel>
          <Edges edges={[...inverted, ...edges.filter((e) => !e.inverted)]} />
          {data?.next && (
            <p class="muted">
              The first {DRAWN.toLocaleString("en-US")} edges are shown: filter by class to see
              others.
            </p>
          )}
        </>
      )}
    </>
  );
}
