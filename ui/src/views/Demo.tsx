// The demo: things to break, and what to watch. Only the server of `interlock demo` has these
// routes.
import { useState } from "preact/hooks";
import { act } from "../act";
import { ErrorBox, Facts, Head, Loading, Panel, Time } from "../components";
import { number } from "../format";
import { type Page, useLive } from "../live";
import { href } from "../router";
import { can } from "../session";

interface Button {
  name: string;
  title: string;
  what: string;
  watch: string;
}

/** The response to the buttons: each returns some of these fields. */
interface Done {
  run_id?: string;
  started?: number;
  joined?: number;
  queue?: string;
  job_id?: string;
  attempt?: number;
  key?: string;
  holder?: string;
  fence?: number;
  pid?: number;
  expires_at?: string;
}

function What({ done: d }: { done: Done }) {
  return (
    <Facts
      of={[
        ["Run", d.run_id && <a href={href("/runs/:id", { id: d.run_id })}>{d.run_id}</a>],
        ["Runs started", d.started !== undefined && number(d.started)],
        ["Triggers that joined it", d.joined !== undefined && number(d.joined)],
        ["Job", d.job_id && <a href={href("/jobs/:id", { id: d.job_id })}>{d.job_id}</a>],
        ["Failed attempt", d.attempt !== undefined && number(d.attempt)],
        ["Key", d.key && <a href={href("/locks/:key", { key: d.key })}>{d.key}</a>],
        ["Holder", d.holder],
        ["Fence", d.fence !== undefined && String(d.fence)],
        ["Process", d.pid !== undefined && String(d.pid)],
        ["Lease expires", d.expires_at && <Time at={d.expires_at} />],
      ]}
    />
  );
}

function Try({ button: b }: { button: Button }) {
  const [done, setDone] = useState<Done>();
  const [busy, setBusy] = useState(false);
  const press = async () => {
    setBusy(true);
    const answer = await act<Done>("POST", `/demo/${b.name}`);
    setBusy(false);
    if (answer) setDone(answer);
  };
  return (
    <Panel
      title={b.title}
      tools={
        can("operator", `demo:${b.name.replaceAll("-", "_")}`, "") && (
          <button type="button" class="primary" disabled={busy} onClick={press}>
            {busy ? "Waiting…" : b.title}
          </button>
        )
      }
    >
      <p>{b.what}</p>
      <p>
        <strong>What to watch:</strong> {b.watch}
      </p>
      {done && <What done={done} />}
    </Panel>
  );
}

export function Demo() {
  const { data, error, loading } = useLive<Page<Button>>("/demo", {}, { every: 0 });
  return (
    <>
      <Head title="Try it" />
      <ErrorBox error={error} />
      {loading && <Loading />}
      {data?.items.map((b) => <Try key={b.name} button={b} />)}
    </>
  );
}
