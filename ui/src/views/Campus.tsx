// The campus: its tournaments, a way to users, sessions and bookings by id, and how often a
// constraint had to refuse a second write.
import { useState } from "preact/hooks";
import { ApiError, open } from "../api";
import {
  Badge,
  Bar,
  Command,
  Empty,
  ErrorBox,
  Facts,
  Head,
  List,
  Panel,
  Time,
} from "../components";
import { number } from "../format";
import { useList, useLoad } from "../live";
import { href, navigate } from "../router";
import type { Tournament } from "./campus_types";
import { campusTone } from "./CampusParts";

const KINDS = [
  { path: "/campus/users/:id", title: "User" },
  { path: "/campus/sessions/:id", title: "Session" },
  { path: "/campus/bookings/:id", title: "Booking" },
  { path: "/campus/tournaments/:id", title: "Tournament" },
];

function OpenById() {
  const [kind, setKind] = useState(KINDS[0]!.path);
  const [id, setId] = useState("");
  const submit = (e: SubmitEvent) => {
    e.preventDefault();
    navigate(href(kind, { id: id.trim() }));
  };
  return (
    <form class="inline" onSubmit={submit} role="search">
      <select aria-label="Kind" value={kind} onChange={(e) => setKind(e.currentTarget.value)}>
        {KINDS.map((k) => (
          <option key={k.path} value={k.path}>
            {k.title}
          </option>
        ))}
      </select>
      <input
        type="search"
        class="filter"
        data-filter
        aria-label="Id"
        placeholder="Id"
        required
        value={id}
        autocomplete="off"
        spellcheck={false}
        onInput={(e) => setId(e.currentTarget.value)}
      />
      <button type="submit">Open</button>
    </form>
  );
}

// ---- integrity ----------------------------------------------------------------------------------

interface Integrity {
  /** Refused writes by race. */
  rollbacks: [string, number][];
  nullDeltas: number;
}

/** From /metrics, which is the same for all tenants; null where it has an address of its own. */
async function readIntegrity(signal: AbortSignal): Promise<Integrity | null> {
  try {
    const text = await (await open("GET", "/metrics", { signal })).text();
    const lines = text.matchAll(
      /^interlock_campus_integrity_rollbacks_total\{race="([^"]*)"\} (\S+)$/gm,
    );
    const deltas = /^interlock_campus_null_deltas_permille (\S+)$/m.exec(text);
    return {
      rollbacks: [...lines].map((l) => [l[1] ?? "", Number(l[2])]),
      nullDeltas: Number(deltas?.[1] ?? 0),
    };
  } catch (e) {
    if (e instanceof ApiError && e.status === 404) return null;
    throw e;
  }
}

function IntegrityPanel() {
  const { data, error } = useLoad("campus integrity", readIntegrity, { every: 5000 });
  return (
    <Panel title="Integrity, of this server">
      <ErrorBox error={error} />
      {data === null && (
        <p class="muted">
          This server has its metrics at an address of their own (metrics_listen).
        </p>
      )}
      {data && (
        <>
          <Facts
            of={[
              ...data.rollbacks.map(([race, n]): [string, string] => [
                `Refused: ${race.replaceAll("_", " ")}`,
                number(n),
              ]),
              ["Participations without a delta", `${(data.nullDeltas / 10).toFixed(1)} %`],
            ]}
          />
          <p class="muted">
            Second writes that a constraint refused since the start: each one is a race that was
            caught. The invariants are under{" "}
            <a href={href("/invariants", {}, { search: "campus." })}>Invariants</a>.
          </p>
        </>
      )}
    </Panel>
  );
}

// ---- tournaments --------------------------------------------------------------------------------

const NoTournaments = () => (
  <Empty title="No tournaments">
    <p>Write a data set to try it with, then enroll, finalize and watch the invariants:</p>
    <Command>interlock --tenant TENANT campus seed</Command>
  </Empty>
);

export function Campus() {
  const live = useList<Tournament>("/campus/tournaments", {});
  return (
    <>
      <Head title="Campus">
        <OpenById />
      </Head>
      <IntegrityPanel />
      <List
        label="Tournaments"
        live={live}
        rowKey={(t) => t.id}
        rowHref={(t) => href("/campus/tournaments/:id", { id: t.id })}
        empty={<NoTournaments />}
        columns={[
          { title: "Tournament", cell: (t) => t.code },
          { title: "Name", cell: (t) => t.name, grow: true, wide: true },
          {
            title: "State",
            cell: (t) => <Badge state={t.state} tone={campusTone(t.state)} />,
          },
          {
            title: "Players",
            cell: (t) => (
              <Bar
                share={t.enrolled / t.max_players}
                text={`${t.enrolled}/${t.max_players}`}
                label="Places taken"
              />
            ),
          },
          { title: "Cost", cell: (t) => number(t.cost), align: "right", wide: true },
          { title: "Campus", cell: (t) => t.campus, wide: true },
          { title: "Completed", cell: (t) => <Time at={t.completed_at} />, wide: true },
        ]}
      />
    </>
  );
}
