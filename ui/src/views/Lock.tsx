// One key: why it is not free, its holders and waiters, and breaking its leases.
import { send } from "../api";
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
  Table,
  Time,
  timeAgo,
} from "../components";
import { age, duration, plural } from "../format";
import { TimeLeft, waitingTimes } from "../leases";
import { useLive } from "../live";
import { href } from "../router";
import { can } from "../session";
import type { Lease, Waiter, Why } from "../types";
import type { ViewProps } from "./index";

interface Broken {
  broken: boolean;
  closing: boolean;
}

function askToBreak(key: string, lease: Lease | null): void {
  confirm({
    title: lease ? "Break this lease" : "Break all leases",
    text: (
      <p>
        {lease ? <code>{lease.holder}</code> : "Each holder"} is asked to stop and shown the reason.{" "}
        <code>{key}</code> is free once it is released or the lease expires.
      </p>
    ),
    fields: (
      <label class="field-check">
        <input type="checkbox" name="now" /> Free the key at once, even if the holder is still
        working
      </label>
    ),
    label: "Break",
    danger: true,
    reason: "required",
    run: async (reason, form) => {
      const target = lease ? { fence: lease.fence, holder: lease.holder } : {};
      const body = { key, reason, now: form.has("now"), ...target };
      const answer = await send<Broken>("POST", "/locks/break", body);
      if (!answer.broken) return `${key} was not held`;
      return answer.closing ? `asked the holder of ${key} to stop` : `broke the lease of ${key}`;
    },
  });
}

/** What `interlock why` says, in one sentence. */
function Sentence({ why }: { why: Why }) {
  const first = why.leases[0];
  const more = why.leases.length - 1;
  if (!first)
    return (
      <p>The key is free{why.waiters.length > 0 ? ", and offered to the first in line" : ""}.</p>
    );
  return (
    <p>
      Held by <b class="mono">{first.holder}</b>
      {more > 0 && ` and ${plural(more, "other")}`} for {age(first.age_ms)}
      {first.place !== "" && (
        <>
          , taken at <code>{first.place}</code>
        </>
      )}
      . It is free in {duration(why.free_in_ms)} unless it is renewed
      {why.waiters.length > 0
        ? `; ${plural(why.waiters.length, "caller waits", "callers wait")}`
        : "; no callers wait"}
      .
    </p>
  );
}

function LeasePanel({ lease }: { lease: Lease }) {
  return (
    <Panel
      title={lease.mode === "exclusive" ? "Holder" : `Holder (${lease.mode})`}
      tools={
        can("operator", "lock:break") && (
          <button type="button" class="danger-text" onClick={() => askToBreak(lease.key, lease)}>
            Break…
          </button>
        )
      }
    >
      <Facts
        of={[
          ["Holder", <Copyable value={lease.holder} label="holder" />],
          ["State", <Badge state={lease.state} />],
          ["Time left", <TimeLeft of={lease} />],
          ["Taken", <Time at={lease.acquired_at} />],
          ["Renewed", <Time at={timeAgo(lease.renewed_ms)} />],
          ["Expires", <Time at={lease.expires_at} />],
          ["TTL", duration(lease.ttl_ms)],
          ["Fence", <Copyable value={String(lease.fence)} label="fence" />],
          ["Permits", lease.permits > 0 && lease.permits],
          ["Place", lease.place !== "" && <code>{lease.place}</code>],
          ["Reason", lease.reason],
        ]}
      />
      {lease.meta !== null && lease.meta !== "" && (
        <>
          <h3>Meta</h3>
          <Json value={lease.meta} label="Meta of the lease" />
        </>
      )}
    </Panel>
  );
}

function WaitersPanel({ waiters }: { waiters: Waiter[] }) {
  return (
    <Panel title="Waiting, in order">
      {waiters.length === 0 ? (
        <p class="muted">No waiters.</p>
      ) : (
        <Table
          label="Waiters"
          rows={waiters.map((w, i) => ({ ...w, place_in_line: i + 1 }))}
          rowKey={(w) => String(w.ticket)}
          columns={[
            { title: "#", cell: (w) => w.place_in_line, align: "right" },
            { title: "Who", cell: (w) => <Copyable value={w.holder} label="holder" />, grow: true },
            { title: "Mode", cell: (w) => w.mode, wide: true },
            { title: "State", cell: (w) => <Badge state={w.state} />, wide: true },
            ...waitingTimes,
          ]}
        />
      )}
    </Panel>
  );
}

export function Lock({ names }: ViewProps) {
  const key = names["key"] ?? "";
  const { data: why, error, loading } = useLive<Why>("/locks/why", { key });
  return (
    <>
      <Head
        title={<Copyable value={key} label="key" mono={false} />}
        above={{ title: "Locks", href: href("/locks") }}
      >
        <a class="button" href={href("/runs", {}, { key })}>
          Runs of this key
        </a>
        {why && why.leases.length > 1 && can("operator", "lock:break") && (
          <button type="button" class="danger-text" onClick={() => askToBreak(key, null)}>
            Break all…
          </button>
        )}
      </Head>
      <ErrorBox error={error} title="Cannot explain the key" />
      {loading && <Loading />}
      {why && (
        <>
          <Panel title="Status">
            <Sentence why={why} />
          </Panel>
          {why.leases.length === 0 && (
            <Empty title="Free">This page updates when the key is acquired.</Empty>
          )}
          {why.leases.map((l) => (
            <LeasePanel key={l.fence} lease={l} />
          ))}
          {(why.leases.length > 0 || why.waiters.length > 0) && (
            <WaitersPanel waiters={why.waiters} />
          )}
        </>
      )}
    </>
  );
}
