// The audit log: who did what to what, and why; newest first.
import { useState } from "preact/hooks";
import { Badge, Copyable, Empty, Filter, Head, Json, List, Panel, Time } from "../components";
import { useList } from "../live";
import { href, useParam } from "../router";
import { can } from "../session";
import { useKeyNames, Who } from "./Who";

interface Act {
  seq: number;
  at: string | null;
  tenant: string;
  who: string;
  act: string;
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

/** What the act was done to, as a link where the page has a view of it. */
function What({ act: a }: { act: Act }) {
  if (a.what === null) return null;
  const place = PLACES[a.act.split(".")[0] ?? ""];
  return <Copyable value={a.what}>{place && <a href={place(a.what)}>{a.what}</a>}</Copyable>;
}

function Details({ act: a, onClose }: { act: Act; onClose: () => void }) {
  return (
    <Panel
      title={`Record ${a.seq}: ${a.act}`}
      tools={
        <button type="button" onClick={onClose}>
          Close
        </button>
      }
    >
      <Json value={a} label="record" />
    </Panel>
  );
}

export function Audit() {
  const names = useKeyNames();
  const [act] = useParam("act");
  const [tenant] = useParam("tenant");
  const [shown, setShown] = useState<Act>();
  const live = useList<Act>("/admin/audit", { act, tenant });
  const filtered = act !== "" || tenant !== "";
  return (
    <>
      <Head title="Audit">
        <Filter name="act" label="Action, such as lock.break" />
        {can("admin", "admin:tenant_list") && <Filter name="tenant" label="Tenant" />}
      </Head>
      {shown && <Details act={shown} onClose={() => setShown(undefined)} />}
      <List
        label="Records"
        live={live}
        rowKey={(a) => String(a.seq)}
        rowTone={(a) => (a.outcome === "OK" ? undefined : "warn")}
        empty={
          <Empty title={filtered ? "No such record" : "No records yet"}>
            {filtered
              ? "The action is its whole name, such as key.create or run.cancel."
              : "Breaks, cancels, retries, pauses, settings, keys and tenants are recorded here."}
          </Empty>
        }
        columns={[
          { title: "When", cell: (a) => <Time at={a.at} /> },
          {
            title: "Who",
            cell: (a) => <Who who={a.who} names={names} />,
            wide: true,
          },
          {
            title: "Action",
            cell: (a) => <a href={href("/audit", {}, { act: a.act, tenant })}>{a.act}</a>,
          },
          { title: "What", cell: (a) => <What act={a} />, grow: true },
          { title: "Tenant", cell: (a) => a.tenant, wide: true },
          { title: "Reason", cell: (a) => a.reason, wide: true },
          {
            title: "Outcome",
            cell: (a) => <Badge state={a.outcome} tone={a.outcome === "OK" ? "ok" : "bad"} />,
          },
          {
            title: "Record",
            cell: (a) => (
              <button type="button" onClick={() => setShown(a)} aria-label={`Show record ${a.seq}`}>
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
