// API keys and tenants. A new key is shown once, with a button that copies it.
import { useState } from "preact/hooks";
import { send } from "../api";
import {
  Badge,
  confirm,
  Copyable,
  Empty,
  Filter,
  Head,
  List,
  Panel,
  Tabs,
  Time,
  type Tone,
} from "../components";
import { shortId } from "../format";
import { useList } from "../live";
import { useParam } from "../router";
import { can, sessionState } from "../session";
import { useStore } from "../store";
import { Tenants, askTenant } from "./Tenants";

interface Key {
  id: string;
  tenant: string;
  name: string | null;
  role: string;
  permissions: string[];
  prefix: string | null;
  created_at: string | null;
  expires_at: string | null;
  used_at: string | null;
  revoked_at: string | null;
}

interface NewKey extends Key {
  key: string | null;
}

const ROLES = ["read", "write", "operator", "admin", "none"];
const LIVES: [string, string][] = [
  ["", "never"],
  ["1", "in a day"],
  ["7", "in a week"],
  ["30", "in 30 days"],
  ["365", "in a year"],
];
const DAY_MS = 86_400_000;

function KeyFields({ tenant }: { tenant: string }) {
  return (
    <>
      <label class="field">
        <span>Tenant</span>
        <input
          type="text"
          name="tenant"
          required
          defaultValue={tenant}
          pattern="[a-z0-9_]+"
          maxLength={64}
          autocomplete="off"
        />
      </label>
      <label class="field">
        <span>Name</span>
        <input type="text" name="name" required maxLength={128} autocomplete="off" />
      </label>
      <label class="field">
        <span>Role</span>
        <select name="role">
          {ROLES.map((r) => (
            <option key={r}>{r}</option>
          ))}
        </select>
      </label>
      <label class="field">
        <span>
          Additional permissions <span class="muted">(separated by spaces)</span>
        </span>
        <input
          type="text"
          name="permissions"
          autocomplete="off"
          spellcheck={false}
          placeholder="queue:claim admin:usage"
        />
      </label>
      <label class="field">
        <span>
          Only names that start with <span class="muted">(optional)</span>
        </span>
        <input type="text" name="prefix" autocomplete="off" spellcheck={false} />
      </label>
      <label class="field">
        <span>Expires</span>
        <select name="days">
          {LIVES.map(([days, title]) => (
            <option key={days} value={days}>
              {title}
            </option>
          ))}
        </select>
      </label>
    </>
  );
}

/** The body of the request, without the fields left empty. */
function keyOf(form: FormData): object {
  const text = (name: string): string => String(form.get(name) ?? "").trim();
  const days = Number(text("days"));
  const permissions = text("permissions").split(/\s+/).filter(Boolean);
  return {
    tenant: text("tenant"),
    name: text("name"),
    role: text("role"),
    ...(permissions.length > 0 && { permissions }),
    ...(text("prefix") !== "" && { prefix: text("prefix") }),
    ...(days > 0 && { expires_in_ms: days * DAY_MS }),
  };
}

function askKey(tenant: string, onCreated: (key: NewKey) => void): void {
  confirm({
    title: "Create an API key",
    text: "The key is shown once, right after it is created.",
    label: "Create key",
    fields: <KeyFields tenant={tenant} />,
    run: async (_, form) => {
      const created = await send<NewKey>("POST", "/admin/api-keys", keyOf(form));
      onCreated(created);
      return `Created key ${created.name ?? created.id}`;
    },
  });
}

function Created({ created, onClose }: { created: NewKey; onClose: () => void }) {
  return (
    <Panel
      title={`The new key “${created.name ?? created.id}”`}
      tools={
        <button type="button" onClick={onClose}>
          I have copied it
        </button>
      }
    >
      {created.key === null ? (
        <p>
          The key exists, but this repeated response does not contain it. Revoke it and create
          another.
        </p>
      ) : (
        <>
          <p class="new-key">
            <Copyable value={created.key} label="the new key" />
          </p>
          <p class="note">Copy it now: it is not stored and cannot be shown again.</p>
        </>
      )}
    </Panel>
  );
}

function askRevoke(key: Key): void {
  confirm({
    title: `Revoke ${key.name ?? key.id}?`,
    text: "All servers reject it within a second. This cannot be undone.",
    label: "Revoke key",
    danger: true,
    run: async () => {
      await send("DELETE", `/admin/api-keys/${encodeURIComponent(key.id)}`);
      return `Revoked key ${key.name ?? key.id}`;
    },
  });
}

function stateOf(key: Key): [string, Tone] {
  if (key.revoked_at) return ["revoked", "idle"];
  if (key.expires_at && Date.parse(key.expires_at) < Date.now()) return ["expired", "warn"];
  return ["live", "ok"];
}

function KeyList({ own }: { own: string }) {
  const [tenant] = useParam("tenant");
  const live = useList<Key>("/admin/api-keys", { tenant });
  return (
    <List
      label="API keys"
      live={live}
      rowKey={(k) => k.id}
      empty={
        <Empty title={tenant ? `The tenant ${tenant} has no keys` : "No keys"}>
          Create one with the button above, or with `interlock key create`.
        </Empty>
      }
      columns={[
        {
          title: "Name",
          cell: (k) => k.name ?? <span class="muted">none</span>,
          grow: true,
        },
        {
          title: "State",
          cell: (k) => <Badge state={stateOf(k)[0]} tone={stateOf(k)[1]} />,
        },
        { title: "Tenant", cell: (k) => k.tenant, wide: true },
        { title: "Role", cell: (k) => k.role },
        {
          title: "Permissions",
          cell: (k) => <span title={k.permissions.join(" ")}>{k.permissions.join(" ")}</span>,
          wide: true,
        },
        {
          title: "Prefix",
          cell: (k) => k.prefix && <span class="mono">{k.prefix}</span>,
          wide: true,
        },
        { title: "Used", cell: (k) => <Time at={k.used_at} none="never" />, wide: true },
        {
          title: "Expires",
          cell: (k) => <Time at={k.expires_at} none="never" />,
          wide: true,
        },
        {
          title: "Id",
          cell: (k) => (
            <Copyable value={k.id} label="id">
              {shortId(k.id)}
            </Copyable>
          ),
          wide: true,
        },
        {
          title: "Action",
          cell: (k) =>
            k.revoked_at === null &&
            can("admin", "admin:key_revoke") &&
            (k.id === own ? (
              <span class="muted">yours</span>
            ) : (
              <button
                type="button"
                class="danger-text"
                aria-label={`Revoke ${k.name ?? k.id}`}
                onClick={() => askRevoke(k)}
              >
                Revoke…
              </button>
            )),
        },
      ]}
    />
  );
}

export function Keys() {
  const [tab] = useParam("tab");
  const [tenant] = useParam("tenant");
  const [created, setCreated] = useState<NewKey>();
  const now = useStore(sessionState);
  const session = now.state === "in" ? now.session : undefined;
  const tenants = tab === "tenants";
  return (
    <>
      <Head title="Keys & tenants">
        {!tenants && <Filter name="tenant" label="Tenant" />}
        {!tenants && can("admin", "admin:key_create") && (
          <button
            type="button"
            class="primary"
            onClick={() => askKey(tenant || (session?.tenant ?? ""), setCreated)}
          >
            Create key…
          </button>
        )}
        {tenants && can("admin", "admin:tenant_create") && (
          <button type="button" class="primary" onClick={() => askTenant(undefined)}>
            Create tenant…
          </button>
        )}
      </Head>
      <Tabs
        label="Keys & tenants"
        tabs={[
          { id: "keys", title: "API keys" },
          { id: "tenants", title: "Tenants" },
        ]}
      />
      {created && <Created created={created} onClose={() => setCreated(undefined)} />}
      {tenants ? <Tenants /> : <KeyList own={session?.key_id ?? ""} />}
    </>
  );
}
