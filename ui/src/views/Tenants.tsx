// Tenants and their limits. A limit of 0 is the default of the server.
import { send } from "../api";
import { confirm, Empty, List, Time } from "../components";
import { bytes, number } from "../format";
import { useList } from "../live";
import { href } from "../router";
import { can } from "../session";

interface Tenant {
  id: string;
  name: string;
  limits: Record<string, number>;
  created_at: string | null;
}

const LIMITS: [string, string][] = [
  ["requests_per_second", "Requests per second"],
  ["burst", "Burst of requests"],
  ["waiters", "Waiting requests"],
  ["streams", "Event streams"],
  ["locks", "Live locks"],
  ["jobs", "Live jobs"],
  ["triggers_per_minute", "Triggers per minute"],
  ["triggers_per_hour", "Triggers per hour"],
  ["runs", "Pipeline runs at a time"],
  ["runs_per_day", "Pipeline runs per day"],
  ["bytes", "Stored bytes"],
];

const limitText = (name: string, value: number): string =>
  name === "bytes" ? bytes(value) : number(value);

/** The limits that differ from the server's defaults. */
function limitsOf(tenant: Tenant): string {
  const own = LIMITS.filter(([name]) => (tenant.limits[name] ?? 0) > 0);
  return own
    .map(([name, title]) => `${title.toLowerCase()}: ${limitText(name, tenant.limits[name] ?? 0)}`)
    .join(", ");
}

function Fields({ tenant }: { tenant: Tenant | undefined }) {
  return (
    <>
      {!tenant && (
        <label class="field">
          <span>
            Id <span class="muted">(lower-case letters, digits and _)</span>
          </span>
          <input
            type="text"
            name="id"
            required
            pattern="[a-z0-9_]+"
            maxLength={64}
            autocomplete="off"
            spellcheck={false}
          />
        </label>
      )}
      <label class="field">
        <span>Name</span>
        <input
          type="text"
          name="name"
          defaultValue={tenant?.name ?? ""}
          required={tenant !== undefined}
          maxLength={128}
          autocomplete="off"
        />
      </label>
      <p class="note">Limits; 0 is the server's default.</p>
      <div class="limits">
        {LIMITS.map(([name, title]) => (
          <label key={name} class="field">
            <span>{title}</span>
            <input
              type="number"
              name={name}
              min={0}
              required
              defaultValue={String(tenant?.limits[name] ?? 0)}
            />
          </label>
        ))}
      </div>
    </>
  );
}

function bodyOf(form: FormData): { name?: string; limits: Record<string, number> } {
  const name = String(form.get("name") ?? "").trim();
  const limits = Object.fromEntries(LIMITS.map(([limit]) => [limit, Number(form.get(limit))]));
  return { ...(name !== "" && { name }), limits };
}

/** Asks for a new tenant, or for changes to one. */
export function askTenant(tenant: Tenant | undefined): void {
  confirm({
    title: tenant ? `Tenant ${tenant.id}` : "Create a tenant",
    text: tenant
      ? "Changes take effect within a second."
      : "A tenant only sees its own locks, runs, queues and values.",
    label: tenant ? "Save" : "Create tenant",
    fields: <Fields tenant={tenant} />,
    run: async (_, form) => {
      if (tenant) {
        await send("PUT", `/admin/tenants/${encodeURIComponent(tenant.id)}`, bodyOf(form));
        return `Saved tenant ${tenant.id}`;
      }
      const id = String(form.get("id"));
      await send("POST", "/admin/tenants", { id, ...bodyOf(form) });
      return `Created tenant ${id}`;
    },
  });
}

export function Tenants() {
  const live = useList<Tenant>("/admin/tenants", {});
  return (
    <List
      label="Tenants"
      live={live}
      rowKey={(t) => t.id}
      empty={
        <Empty title="No tenants">
          Create one with the button above, or with `interlock tenant create`.
        </Empty>
      }
      columns={[
        {
          title: "Tenant",
          cell: (t) => <a href={href("/keys", {}, { tenant: t.id })}>{t.id}</a>,
        },
        { title: "Name", cell: (t) => t.name },
        {
          title: "Own limits",
          cell: (t) => limitsOf(t) || <span class="muted">none</span>,
          grow: true,
          wide: true,
        },
        { title: "Created", cell: (t) => <Time at={t.created_at} />, wide: true },
        {
          title: "Action",
          cell: (t) =>
            can("admin", "admin:tenant_set") && (
              <button
                type="button"
                aria-label={`Change tenant ${t.id}`}
                onClick={() => askTenant(t)}
              >
                Change…
              </button>
            ),
        },
      ]}
    />
  );
}
