// The tenant's pipelines, each with its last and its next run.
import { useState } from "preact/hooks";
import { explain, notify } from "../act";
import { send } from "../api";
import { Badge, Command, Empty, Head, List, Panel, Time } from "../components";
import { duration, plural } from "../format";
import { refresh, useList } from "../live";
import { href } from "../router";
import { can } from "../session";
import type { Loaded, Pipeline } from "./pipeline_types";

function Problems({ loaded, onClose }: { loaded: Loaded; onClose: () => void }) {
  return (
    <Panel
      title={`${plural(loaded.bad_files, "invalid file")}`}
      tools={
        <button type="button" onClick={onClose}>
          Close
        </button>
      }
    >
      <p class="muted">The last valid version of each stays in use.</p>
      <ul class="problems">
        {loaded.problems.map((p) => (
          <li key={p.message} class="mono">
            {p.message}
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function NoPipelines() {
  return (
    <Empty title="No pipelines">
      <p>
        Put a YAML file into a folder per tenant, start the server with it, and reload the files
        after a change:
      </p>
      <Command>
        {`mkdir -p pipelines/TENANT
cat >pipelines/TENANT/hello.yml <<'END'
pipeline_id: hello
steps:
- {step_id: greet, type: command, run: [echo, hello]}
END
interlock pipelines check pipelines
interlock serve --pipelines pipelines`}
      </Command>
    </Empty>
  );
}

function LastRun({ run }: { run: Pipeline["last_run"] }) {
  if (!run) return <span class="muted">never</span>;
  return (
    <span class="inline">
      <Badge state={run.status} title={run.error_message ?? undefined} />
      <a href={href("/runs/:id", { id: run.pipeline_logging_id })}>
        <Time at={run.end_time ?? run.start_time ?? run.created_at} />
      </a>
    </span>
  );
}

export function Pipelines() {
  const live = useList<Pipeline>("/pipelines", {});
  const [loaded, setLoaded] = useState<Loaded>();
  const [busy, setBusy] = useState(false);

  const reload = async () => {
    setBusy(true);
    try {
      const now = await send<Loaded>("POST", "/pipelines/reload");
      setLoaded(now.bad_files > 0 ? now : undefined);
      notify(
        now.bad_files > 0 ? "bad" : "ok",
        `${plural(now.pipelines, "pipeline")} loaded, ${now.changed} changed, ${plural(now.bad_files, "invalid file")}`,
      );
    } catch (e) {
      notify("bad", explain(e));
    }
    setBusy(false);
    refresh();
  };

  return (
    <>
      <Head title="Pipelines">
        {can("operator", "pipeline:reload", "pipeline:") && (
          <button type="button" disabled={busy} onClick={() => void reload()}>
            Reload files
          </button>
        )}
      </Head>
      {loaded && <Problems loaded={loaded} onClose={() => setLoaded(undefined)} />}
      <List
        label="Pipelines"
        live={live}
        rowKey={(p) => p.pipeline_id}
        rowHref={(p) => href("/pipelines/:id", { id: p.pipeline_id })}
        rowTone={(p) =>
          p.last_run && ["FAILED", "TIMEOUT"].includes(p.last_run.status) ? "bad" : undefined
        }
        empty={<NoPipelines />}
        columns={[
          { title: "Pipeline", cell: (p) => p.pipeline_id },
          { title: "Description", cell: (p) => p.description, grow: true, wide: true },
          { title: "Last run", cell: (p) => <LastRun run={p.last_run} /> },
          {
            title: "Took",
            cell: (p) => duration(p.last_run?.duration_ms),
            align: "right",
            wide: true,
          },
          {
            title: "Schedule",
            cell: (p) => p.schedule && <span class="mono">{p.schedule}</span>,
            wide: true,
          },
          { title: "Next run", cell: (p) => p.schedule && <Time at={p.next_run_at} /> },
        ]}
      />
    </>
  );
}
