// The server as it is: version, engine, load; the configuration in force and where it comes from.
import {
  Badge,
  Check,
  Copyable,
  Empty,
  ErrorBox,
  Facts,
  Filter,
  Head,
  Loading,
  Panel,
  Table,
  Time,
} from "../components";
import { duration, number } from "../format";
import { type Page, useLive } from "../live";
import { useParam } from "../router";
import { type Session, sessionState } from "../session";
import { useStore } from "../store";

interface Setting {
  key: string;
  value: string;
  source: string;
  env: string | null;
}

interface Status {
  version: string;
  engine: string;
  now: string;
  uptime_ms: number;
  store: string;
  data: string;
  connections: number;
  requests: number;
  waiters: number;
  streams: number;
}

function Server() {
  const { data: s, error } = useLive<Status>("/status");
  return (
    <Panel title="Server">
      <ErrorBox error={error} />
      {s && (
        <Facts
          of={[
            ["Version", s.version],
            ["Engine of the store", s.engine],
            ["Running for", duration(s.uptime_ms)],
            ["Store", <Badge state={s.store} />],
            ["Data store", <Badge state={s.data} />],
            ["Connections", number(s.connections)],
            ["Requests in progress", number(s.requests)],
            ["Waiting requests", number(s.waiters)],
            ["Event streams", number(s.streams)],
          ]}
        />
      )}
    </Panel>
  );
}

function SignedIn({ session: s }: { session: Session }) {
  return (
    <Panel title="Your key">
      <Facts
        of={[
          ["Tenant", s.tenant],
          ["Key", <Copyable value={s.key_id} label="id of the key" />],
          ["Permissions", s.permissions.join(", ")],
          ["Signed in until", <Time at={s.expires_at} />],
        ]}
      />
    </Panel>
  );
}

const origin = (s: Setting): string =>
  s.source.includes("/") ? s.source.replace(/^.*\//, "") : s.source;

function Configuration() {
  const [search] = useParam("search");
  const [changed] = useParam("changed");
  const { data, error, loading } = useLive<Page<Setting>>("/admin/config", {}, { every: 10_000 });
  const lower = search.toLowerCase();
  const rows = (data?.items ?? []).filter(
    (s) =>
      (changed === "" || s.source !== "default") &&
      `${s.key} ${s.value} ${s.env ?? ""}`.toLowerCase().includes(lower),
  );
  return (
    <Panel
      title="Configuration in force"
      tools={
        <span class="inline">
          <Check name="changed" label="Changed from the default" />
          <Filter name="search" label="Key, value or variable" />
        </span>
      }
    >
      <ErrorBox error={error} />
      {loading && <Loading />}
      {data &&
        (rows.length === 0 ? (
          <Empty title="No matching settings" />
        ) : (
          <Table
            label="Settings"
            rows={rows}
            rowKey={(s) => s.key}
            columns={[
              { title: "Key", cell: (s) => <span class="mono">{s.key}</span> },
              {
                title: "Value",
                cell: (s) =>
                  s.value === "" ? (
                    <span class="muted">empty</span>
                  ) : (
                    <Copyable value={s.value} label={s.key} />
                  ),
                grow: true,
              },
              {
                title: "Origin",
                cell: (s) =>
                  s.source === "default" ? (
                    <span class="muted">default</span>
                  ) : (
                    <span title={s.source}>{origin(s)}</span>
                  ),
              },
              {
                title: "Variable",
                cell: (s) => <span class="mono">{s.env}</span>,
                wide: true,
              },
            ]}
          />
        ))}
    </Panel>
  );
}

export function Settings() {
  const now = useStore(sessionState);
  return (
    <>
      <Head title="Settings" />
      <div class="columns">
        <Server />
        {now.state === "in" && <SignedIn session={now.session} />}
      </div>
      <Configuration />
    </>
  );
}
