// The campus: its tournaments, and a way to users, sessions and bookings by id.
import { useState } from "preact/hooks";
import { Badge, Bar, Command, Empty, Head, List, Time } from "../components";
import { number } from "../format";
import { useList } from "../live";
import { href, navigate } from "../router";
import type { Tournament } from "./campus_types";
import { CampusIntegrity } from "./CampusIntegrity";
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

// ---- tournaments --------------------------------------------------------------------------------

const NoTournaments = () => (
  <Empty title="No tournaments">
    <p>Create sample data, then enroll, finalize and watch the invariants:</p>
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
      <CampusIntegrity />
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
