// Looks up one cached value or one idempotency key, and counts cached values by prefix. Keys are
// not listed: there may be many of them, and their names may reveal too much.
import { useState } from "preact/hooks";
import { send, ApiError, get, open } from "../api";
import {
  Badge,
  confirm,
  Copyable,
  Empty,
  ErrorBox,
  Facts,
  Head,
  Json,
  Loading,
  Panel,
  Tabs,
} from "../components";
import { bytes, duration, number } from "../format";
import { useLoad } from "../live";
import { queryString, setParams, useParam } from "../router";
import { can } from "../session";

// ---- one key ------------------------------------------------------------------------------------

/** Reads one key; null if it does not exist. */
async function lookUp<T>(path: string, key: string, signal: AbortSignal): Promise<T | null> {
  const headers = { "Content-Type": "application/json" };
  try {
    const answer = await open("POST", `/ui/api${path}`, {
      headers,
      signal,
      body: JSON.stringify({ key }),
    });
    return (await answer.json()) as T;
  } catch (e) {
    if (e instanceof ApiError && e.status === 404) return null;
    throw e;
  }
}

/** Asks for a key; it is in the URL, so that the page can be linked to. */
function KeyForm({ label, button }: { label: string; button: string }) {
  const [key] = useParam("key");
  const [typed, setTyped] = useState(key);
  const submit = (e: SubmitEvent) => {
    e.preventDefault();
    setParams({ key: typed }, { push: true });
  };
  return (
    <form class="inline" onSubmit={submit} role="search">
      <input
        class="key-input"
        type="search"
        data-filter
        aria-label={label}
        placeholder={label}
        value={typed}
        required
        maxLength={512}
        spellcheck={false}
        autocomplete="off"
        onInput={(e) => setTyped(e.currentTarget.value)}
      />
      <button type="submit" class="primary">
        {button}
      </button>
    </form>
  );
}

interface Cached {
  key: string;
  stale: boolean;
  negative: boolean;
  value: unknown;
  value_base64?: string;
  code: number;
  age_ms: number;
  remaining_ms: number;
}

function askDrop(key: string): void {
  confirm({
    title: "Drop this value?",
    text: "The next request rebuilds it. A build in progress is discarded.",
    label: "Drop value",
    danger: true,
    run: async () => {
      await send("POST", "/cache/drop", { key });
      return `Dropped ${key}`;
    },
  });
}

function CachedValue({ found: f }: { found: Cached }) {
  return (
    <Panel
      title="Value"
      tools={
        can("write", "cache:drop") && (
          <button type="button" class="danger-text" onClick={() => askDrop(f.key)}>
            Drop…
          </button>
        )
      }
    >
      <Facts
        of={[
          ["Key", <Copyable value={f.key} label="key" />],
          [
            "State",
            <Badge
              state={f.negative ? "negative" : f.stale ? "stale" : "fresh"}
              tone={f.stale ? "warn" : "ok"}
            />,
          ],
          ["Age", duration(f.age_ms)],
          ["Usable for another", duration(f.remaining_ms)],
          ["Code", f.code !== 0 && f.code],
        ]}
      />
      <div class="after-facts">
        <Json value={f.value ?? f.value_base64} label="value" />
      </div>
    </Panel>
  );
}

function CacheKey() {
  const [key] = useParam("key");
  const { data, error, loading } = useLoad(
    `cache ${key}`,
    (s) => lookUp<Cached>("/cache/get", key, s),
    { when: key !== "" },
  );
  return (
    <>
      <KeyForm label="Key of a cached value" button="Look up" />
      <div class="after-form" role="status">
        <ErrorBox error={error} />
        {key === "" && <p class="muted">Enter the full key that the program passed to the cache.</p>}
        {key !== "" && loading && <Loading />}
        {key !== "" && data === null && (
          <Empty title="Nothing is cached under this key">
            It has never been built, has expired or was dropped. Looking it up does not build it.
          </Empty>
        )}
        {key !== "" && data && <CachedValue found={data} />}
      </div>
    </>
  );
}

// ---- idempotency keys ---------------------------------------------------------------------------

interface Once {
  key: string;
  status: string;
  response: unknown;
  response_base64?: string;
  code: number;
  meta: string | null;
  age_ms: number;
  remaining_ms: number;
}

const ONCE_TEXT: Record<string, string> = {
  REPLAY: "done: its response is stored and replayed",
  BUSY: "claimed: an attempt is in progress",
};

function OnceValue({ found: f }: { found: Once }) {
  return (
    <Panel title="Key">
      <Facts
        of={[
          ["Key", <Copyable value={f.key} label="key" />],
          ["State", ONCE_TEXT[f.status] ?? f.status.toLowerCase()],
          ["Age", duration(f.age_ms)],
          ["Kept for another", duration(f.remaining_ms)],
          ["Code", f.code !== 0 && f.code],
        ]}
      />
      <h3 class="after-facts">
        Stored response
        {f.response === null && f.response_base64 && <span class="muted"> (base64)</span>}
      </h3>
      <Json value={f.response ?? f.response_base64} label="stored response" />
      {f.meta && (
        <>
          <h3 class="after-facts">About the claim</h3>
          <Json value={parsed(f.meta)} label="about the claim" />
        </>
      )}
    </Panel>
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function OnceKey() {
  const [key] = useParam("key");
  const { data, error, loading } = useLoad(
    `once ${key}`,
    (s) => lookUp<Once>("/idempotency/get", key, s),
    { when: key !== "" },
  );
  return (
    <>
      <KeyForm label="Idempotency key" button="Look up" />
      <div class="after-form" role="status">
        <ErrorBox error={error} />
        {key === "" && (
          <p class="muted">
            A key of `interlock once` or of the library. Responses to the header Idempotency-Key are
            stored under a hash and cannot be looked up.
          </p>
        )}
        {key !== "" && loading && <Loading />}
        {key !== "" && data === null && (
          <Empty title="This key is not in use">
            It was never used or has expired; the next caller does the work.
          </Empty>
        )}
        {key !== "" && data && <OnceValue found={data} />}
      </div>
    </>
  );
}

// ---- counts -------------------------------------------------------------------------------------

interface Stats {
  entries: number;
  bytes: number;
  fresh: number;
  stale: number;
  negative: number;
  building: number;
  next: string | null;
}

const PAGES_MAX = 10;
const PAGE_KEYS = 1000;

/** Counts page by page; `next` is not null if there is more than was counted. */
async function count(prefix: string, signal: AbortSignal): Promise<Stats> {
  const sum: Stats = {
    entries: 0,
    bytes: 0,
    fresh: 0,
    stale: 0,
    negative: 0,
    building: 0,
    next: null,
  };
  for (let pages = 0; pages < PAGES_MAX; pages++) {
    const page = await get<Stats>(
      `/cache/stats${queryString({ prefix, cursor: sum.next, limit: PAGE_KEYS })}`,
      signal,
    );
    for (const name of ["entries", "bytes", "fresh", "stale", "negative", "building"] as const)
      sum[name] += page[name];
    sum.next = page.next;
    if (sum.next === null) break;
  }
  return sum;
}

function Counts() {
  const [prefix] = useParam("prefix");
  const [typed, setTyped] = useState(prefix);
  const {
    data: c,
    error,
    loading,
  } = useLoad(`cache counts ${prefix}`, (s) => count(prefix, s), { every: 5000 });
  const n = (value: number): string =>
    c && c.next !== null ? `over ${number(value)}` : number(value);
  const submit = (e: SubmitEvent) => {
    e.preventDefault();
    setParams({ prefix: typed });
  };
  return (
    <>
      <form class="inline" onSubmit={submit} role="search">
        <input
          class="key-input"
          type="search"
          data-filter
          aria-label="Keys that start with"
          placeholder="Keys that start with"
          value={typed}
          maxLength={512}
          spellcheck={false}
          autocomplete="off"
          onInput={(e) => setTyped(e.currentTarget.value)}
        />
        <button type="submit" class="primary">
          Count
        </button>
      </form>
      <div class="after-form" role="status">
        <ErrorBox error={error} />
        {loading && <Loading />}
        {c && c.entries === 0 && c.building === 0 && (
          <Empty title={prefix ? "Nothing is cached with this prefix" : "Nothing is cached"}>
            Values appear here when a program fills the cache: `interlock cache`, POST /cache/lookup
            or the library.
          </Empty>
        )}
        {c && (c.entries > 0 || c.building > 0) && (
          <Panel title={prefix ? `Values with the prefix ${prefix}` : "All cached values"}>
            <Facts
              of={[
                ["Values", n(c.entries)],
                ["Size", `${c.next !== null ? "over " : ""}${bytes(c.bytes)}`],
                ["Fresh", n(c.fresh)],
                ["Stale", n(c.stale)],
                ["Negative", n(c.negative)],
                ["Being built", n(c.building)],
              ]}
            />
          </Panel>
        )}
      </div>
    </>
  );
}

export function Cache() {
  const [tab] = useParam("tab");
  return (
    <>
      <Head title="Cache & idempotency" />
      <Tabs
        label="Cache & idempotency"
        tabs={[
          { id: "value", title: "Cached value" },
          { id: "counts", title: "Counts" },
          { id: "once", title: "Idempotency key" },
        ]}
      />
      {tab === "once" ? (
        <OnceKey key="once" />
      ) : tab === "counts" ? (
        <Counts />
      ) : (
        <CacheKey key="cache" />
      )}
    </>
  );
}
