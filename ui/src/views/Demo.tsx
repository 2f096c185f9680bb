// What can be tried in the demo: each button does something to a real process, then says what to
// watch, with a link to where it can be seen. Only the server of `interlock demo` has these routes.
import { useState } from "preact/hooks";
import { explain } from "../act";
import { send } from "../api";
import { ErrorBox, Head, Loading, Panel } from "../components";
import { plural } from "../format";
import { type Page, refresh, useLive } from "../live";
import { href } from "../router";
import { can } from "../session";
import type { ViewProps } from "./index";

interface Button {
  name: string;
  title: string;
  what: string;
  watch: string;
  path: string;
}

/** What a button answers: each has some of these. */
interface Done {
  watch: string;
  run_id?: string;
  started?: number;
  joined?: number;
  job_id?: string;
  key?: string;
}

const PREFIX = "/api/v1";

function Outcome({ done }: { done: Done }) {
  return (
    <div role="status">
      {done.started !== undefined && (
        <p>
          <b>
            {plural(done.started, "run started", "runs started")},{" "}
            {plural(done.joined ?? 0, "trigger")} joined.
          </b>
        </p>
      )}
      <p>{done.watch}</p>
      <p>
        {done.run_id !== undefined && (
          <a href={href("/runs/:id", { id: done.run_id })}>Watch the run</a>
        )}
        {done.job_id !== undefined && (
          <a href={href("/jobs/:id", { id: done.job_id })}>Watch the job</a>
        )}
        {done.key !== undefined && (
          <a href={href("/locks/:key", { key: done.key })}>Watch the lock</a>
        )}
      </p>
    </div>
  );
}

function Trial({ button }: { button: Button }) {
  const [busy, setBusy] = useState(false);
  const [done, setDone] = useState<Done>();
  const [error, setError] = useState<string>();
  const press = async () => {
    setBusy(true);
    setDone(undefined);
    setError(undefined);
    try {
      setDone(await send<Done>("POST", button.path.replace(PREFIX, "")));
    } catch (e) {
      setError(explain(e));
    }
    setBusy(false);
    refresh();
  };
  return (
    <Panel title={button.title}>
      <p class="muted">{button.what}</p>
      {can("operator", `demo:${button.name.replaceAll("-", "_")}`) && (
        <button type="button" class="primary trial" disabled={busy} onClick={() => void press()}>
          {busy ? "Waiting for it to happen…" : button.title}
        </button>
      )}
      {error !== undefined && (
        <p class="error-text" role="alert">
          {error}
        </p>
      )}
      {done ? <Outcome done={done} /> : <p class="muted">What to watch: {button.watch}</p>}
    </Panel>
  );
}

export function Demo(_: ViewProps) {
  const { data, error, loading } = useLive<Page<Button>>("/demo", {}, { every: 0 });
  return (
    <>
      <Head title="Try it" />
      <ErrorBox error={error} title="Cannot list what can be tried" />
      {loading && <Loading />}
      <div class="columns">
        {data?.items.map((b) => (
          <Trial key={b.name} button={b} />
        ))}
      </div>
    </>
  );
}
