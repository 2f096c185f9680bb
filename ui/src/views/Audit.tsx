// The audit log: who did what to what, and why; newest first.
import { useState } from "preact/hooks";
import { Badge, Copyable, Empty, Filter, Head, Json, List, Panel, Time } from "../components";
import { useList } from "../live";
import { href, useParam } from "../router";
import { can } from "../session";
import { useKeyNames, Who } from "./Who";

interface Entry {
  seq: number;
  at: string | null;
  tenant: string;
  who: string;
  action: string;
  what: string | null;
  reason: string | null;
  outcome: string;
  details: unknown;
}

const PLACES: Record<string, (what: string) => string> = {
  lock: (key) => href("/locks/:key", { key }),
  run: (id) => href("/runs/:id", { id }),
  job: (id) => href("/jobs/:id", { id }),
  queue: (queue) => href("/queues/:queue", { queue }),
};

/** The object of the action, as a link where the page has a view of it. */
function What({ entry: e }: { entry: Entry }) {
  if (e.what === null) return null;
  const place = PLACES[e.action.split(".")[0] ?? ""];
  return <Copyable value={e.what}>{place && <a href={place(e.what)}>{e.what}</a>}</Copyable>;
}

function Details({ entry: e, onClose }: { entry: Entry; onClose: () => void }) {
  return (
    <Panel
      title={`Entry ${e.seq}: ${e.action}`}
      tools={
        <button type="button" onClick={onClose}>
          Close
        </button>
      }
    >
      <Json value={e} label="entry" />
    </Panel>
  );
}

export function Audit() {
  const names = useKeyNames();
  const [action] = useParam("action");
  const [tenant] = useParam("tenant");
  const [shown, setShown] = useState<Entry>();
  const live = useList<Entry>("/admin/audit", { action, tenant });
  const filtered = action !== "" || tenant !== "";
  return (
    <>
      <Head title="Audit">
        <Filter name="action" label="Action, such as lock.break" />
        {can("admin", "admin:tenant_list") && <Filter name="tenant" label="Tenant" />}
      </Head>
      {shown && <Details entry={shown} onClose={() => setShown(undefined)} />}
      <List
        label="Entries"
        live={live}
        rowKey={(e) => String(e.seq)}
        rowTone={(e) => (e.outcome === "OK" ? undefined : "warn")}
        empty={
          <Empty title={filtered ? "No matching entries" : "No entries yet"}>
            {filtered
              ? "Enter the full action name, such as key.create."
              : "Breaks, cancels, retries, pauses, settings, keys and tenants are recorded here."}
          </Empty>
        }
        columns={[
          { title: "When", cell: (e) => <Time at={e.at} /> },
          {
            title: "Who",
            cell: (e) => <Who who={e.who} names={names} />,
            wide: true,
          },
          {
            title: "Action",
            cell: (e) => <a href={href("/audit", {}, { action: e.action, tenant })}>{e.action}</a>,
          },
          { title: "What", cell: (e) => <What entry={e} />, grow: true },
          { title: "Tenant", cell: (e) => e.tenant, wide: true },
          { title: "Reason", cell: (e) => e.reason, wide: true },
          {
            title: "Outcome",
            cell: (e) => <Badge state={e.outcome} tone={e.outcome === "OK" ? "ok" : "bad"} />,
          },
          {
            title: "Entry",
            cell: (e) => (
              <button type="button" onClick={() => setShown(e)} aria-label={`Show entry ${e.seq}`}>
                Show
              </button>
            ),
            wide: true,
          },
        ]}
      />
    </>
  );
}
