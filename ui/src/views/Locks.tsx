import { Badge, Bar, Copyable, Empty, Filter, Head, List, Time } from "../components";
import { duration } from "../format";
import { useList } from "../live";
import { href, useParam } from "../router";
import type { Lease } from "../types";

export function Locks() {
  const [prefix] = useParam("prefix");
  const live = useList<Lease>("/locks", { prefix });
  return (
    <>
      <Head title="Locks">
        <Filter name="prefix" label="Key starts with" />
      </Head>
      <List
        label="Locks"
        live={live}
        rowKey={(l) => `${l.key} ${l.fence}`}
        rowHref={(l) => href("/locks/:key", { key: l.key })}
        empty={<Empty title="Nothing is locked">Locks appear here as soon as a program takes one.</Empty>}
        columns={[
          { title: "Key", cell: (l) => l.key, grow: true },
          { title: "Holder", cell: (l) => <Copyable value={l.holder} label="holder" />, wide: true },
          { title: "State", cell: (l) => <Badge state={l.state} /> },
          { title: "Age", cell: (l) => <Time at={l.acquired_at} /> },
          {
            title: "Time left",
            cell: (l) => <Bar share={(l.remaining_ms ?? 0) / l.ttl_ms} text={duration(l.remaining_ms)} label="Time left" />,
          },
        ]}
      />
    </>
  );
}
