// The form that triggers a pipeline, and the outcome: a new run, or the one already running.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { explain } from "../act";
import { ApiError, send } from "../api";
import { Badge, Panel, Time } from "../components";
import { shortId } from "../format";
import { refresh, useLive } from "../live";
import { href } from "../router";
import {
  isId,
  type Parameter,
  type PipelineFull,
  type PipelineRun,
  type Triggered,
} from "./pipeline_types";

/** The outcome of the last trigger; `run` is an id, or the name of another holder. */
type Outcome =
  | { kind: "started" | "found" | "refused"; run: string; text: string }
  | { kind: "failed"; text: string };

function outcomeOf(e: unknown): Outcome {
  if (e instanceof ApiError) {
    const held = e.details["pipeline_logging_id"] ?? e.details["run_id"] ?? e.details["holder"];
    if (e.code === "LOCK_HELD" && typeof held === "string")
      return { kind: "refused", run: held, text: e.message };
  }
  return { kind: "failed", text: explain(e) };
}

const WHILE_IT_RUNS: Record<string, string> = {
  join: "If a run is in progress, a trigger joins it.",
  skip: "If a run is in progress, a trigger is skipped.",
  reject: "If a run is in progress, a trigger is refused.",
  queue: "If a run is in progress, a trigger waits in line.",
  "replace-pending": "If a run is in progress, a trigger waits and replaces those already waiting.",
  "cancel-running": "A trigger stops the run in progress.",
};

const FOUND: Record<string, string> = {
  skip: "Already running: your trigger was skipped.",
  join: "Already running: your trigger joined that run.",
};

function RunLine({ id, children }: { id: string; children: ComponentChildren }) {
  const known = isId(id);
  const { data } = useLive<PipelineRun>(
    `/pipelines/runs/${encodeURIComponent(id)}`,
    {},
    { when: known },
  );
  return (
    <>
      <p>{children}</p>
      <p class="inline">
        {known ? (
          <a href={href("/runs/:id", { id })}>Run {shortId(id)}</a>
        ) : (
          <span class="mono">{id}</span>
        )}
        {data && (
          <>
            <Badge state={data.status} title={data.error_message ?? undefined} />
            <span class="muted">
              since <Time at={data.start_time ?? data.created_at} />
              {data.stage && `, at ${data.stage}`}
              {data.position !== null && `, place ${data.position} in line`}
            </span>
          </>
        )}
      </p>
    </>
  );
}

function Result({ outcome, onConflict }: { outcome: Outcome; onConflict: string }) {
  if (outcome.kind === "failed") return <p class="error-text">{outcome.text}</p>;
  const text =
    outcome.kind === "started"
      ? "Started."
      : outcome.kind === "refused"
        ? outcome.text
        : (FOUND[onConflict] ?? FOUND["join"]);
  return <RunLine id={outcome.run}>{text}</RunLine>;
}

function Field({ parameter: p }: { parameter: Parameter }) {
  return (
    <label class="field">
      <span>
        {p.name}
        {!p.required && (
          <span class="muted">
            {" "}
            (default: {p.default === "" || p.default === null ? "empty" : p.default})
          </span>
        )}
      </span>
      <input
        type="text"
        name={`p.${p.name}`}
        required={p.required}
        autocomplete="off"
        spellcheck={false}
      />
    </label>
  );
}

/** The parameters that were filled in. */
function parametersOf(form: FormData): Record<string, string> {
  const given = [...form.entries()].filter(([, value]) => value !== "");
  return Object.fromEntries(
    given.map(([name, value]) => [name.replace(/^p\./, ""), String(value)]),
  );
}

export function Trigger({ pipeline }: { pipeline: PipelineFull }) {
  const [busy, setBusy] = useState(false);
  const [outcome, setOutcome] = useState<Outcome>();

  const submit = async (e: SubmitEvent) => {
    e.preventDefault();
    const parameters = parametersOf(new FormData(e.currentTarget as HTMLFormElement));
    setBusy(true);
    try {
      const got = await send<Triggered>(
        "POST",
        `/pipelines/run/${encodeURIComponent(pipeline.pipeline_id)}`,
        parameters,
      );
      const kind = got.status === "PENDING" ? "started" : "found";
      setOutcome({ kind, run: got.pipeline_logging_id, text: got.message });
    } catch (failure) {
      setOutcome(outcomeOf(failure));
    }
    setBusy(false);
    refresh();
  };

  return (
    <Panel title="Trigger">
      <form onSubmit={(e) => void submit(e)}>
        {pipeline.parameters.map((p) => (
          <Field key={p.name} parameter={p} />
        ))}
        <p class="inline">
          <button type="submit" class="primary" disabled={busy}>
            Trigger
          </button>
          <span class="muted">{WHILE_IT_RUNS[pipeline.on_conflict]}</span>
        </p>
      </form>
      <div role="status" class="trigger-result">
        {outcome && (
          <Result
            key={JSON.stringify(outcome)}
            outcome={outcome}
            onConflict={pipeline.on_conflict}
          />
        )}
      </div>
    </Panel>
  );
}
