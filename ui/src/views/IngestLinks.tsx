// Which users may be which drivers, and who decides: suggestions and conflicts first of all.
import { act } from "../act";
import { send } from "../api";
import { Badge, confirm, Empty, List, Time, type Tone } from "../components";
import { number } from "../format";
import { useList } from "../live";
import { useParam } from "../router";
import { can } from "../session";

interface DriverLink {
  id: string;
  state: string;
  score: number;
  email: string;
  user_name: string;
  driver_name: string;
  rival: string | null;
  n_events: number;
  updated_at: string | null;
}

export const LINK_STATES = [
  { value: "", title: "all" },
  { value: "conflict", title: "conflict" },
  { value: "suggested", title: "suggested" },
  { value: "confirmed", title: "confirmed" },
  { value: "rejected", title: "rejected" },
];

const TONES: Record<string, Tone> = { confirmed: "ok", suggested: "busy", conflict: "warn" };

const pathOf = (l: DriverLink, call: string): string =>
  `/ingestion/links/${encodeURIComponent(l.id)}/${call}`;

/** Two users match the driver equally well: an operator must choose one. */
function askWhich(l: DriverLink): void {
  confirm({
    title: `Who is ${l.driver_name}?`,
    text: "The link is confirmed for this user; later ingestions do not change it.",
    label: "Confirm",
    fields: (
      <label class="field">
        <span>User</span>
        <select name="email">
          {[l.email, l.rival].map((email) => email && <option key={email}>{email}</option>)}
        </select>
      </label>
    ),
    run: async (_, form) => {
      const email = String(form.get("email"));
      await send("POST", pathOf(l, "confirm"), { email });
      return `${l.driver_name} is ${email}`;
    },
  });
}

function Decide({ link: l }: { link: DriverLink }) {
  const yes = () =>
    l.state === "conflict"
      ? askWhich(l)
      : void act("POST", pathOf(l, "confirm"), {}, `${l.driver_name} is ${l.email}`);
  const no = () =>
    void act("POST", pathOf(l, "reject"), undefined, `${l.driver_name} is not ${l.email}`);
  return (
    <span class="inline">
      {l.state !== "confirmed" && can("write", "ingest:link_confirm") && (
        <button type="button" aria-label={`Confirm ${l.driver_name}`} onClick={yes}>
          {l.state === "conflict" ? "Confirm…" : "Confirm"}
        </button>
      )}
      {l.state !== "rejected" && can("write", "ingest:link_reject") && (
        <button type="button" aria-label={`Reject ${l.driver_name}`} onClick={no}>
          Reject
        </button>
      )}
    </span>
  );
}

export function IngestLinks() {
  const [state] = useParam("state");
  const live = useList<DriverLink>("/ingestion/links", { state });
  return (
    <List
      label="Links"
      live={live}
      rowKey={(l) => l.id}
      rowTone={(l) => (l.state === "conflict" ? "warn" : undefined)}
      empty={
        <Empty title={state ? "No such link" : "No links yet"}>
          Drivers are matched with users while their events are ingested. Add users with{" "}
          <code>interlock ingest users import</code>.
        </Empty>
      }
      columns={[
        { title: "Driver", cell: (l) => l.driver_name },
        {
          title: "User",
          cell: (l) => <span title={l.user_name}>{l.email}</span>,
          grow: true,
        },
        { title: "Other user", cell: (l) => l.rival, wide: true },
        {
          title: "State",
          cell: (l) => <Badge state={l.state} tone={TONES[l.state] ?? "idle"} />,
        },
        { title: "Score", cell: (l) => l.score.toFixed(3), align: "right", wide: true },
        { title: "Events", cell: (l) => number(l.n_events), align: "right", wide: true },
        { title: "Changed", cell: (l) => <Time at={l.updated_at} />, wide: true },
        { title: "Action", cell: (l) => <Decide link={l} /> },
      ]}
    />
  );
}
