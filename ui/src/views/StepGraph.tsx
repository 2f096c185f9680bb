// The steps of a pipeline as a drawing, with their states in a run. The table of steps beside it
// has the same content.
import { Graph, toneOf } from "../components";
import { duration, plural } from "../format";
import type { RunStep, Step } from "./pipeline_types";

function noteOf(step: Step, ran: RunStep | undefined): string {
  if (!ran || ran.status === "PENDING") return step.type;
  const took = ran.duration_ms === null ? "" : ` · ${duration(ran.duration_ms)}`;
  return `${ran.status.toLowerCase()}${took}`;
}

interface StepGraphProps {
  steps: Step[];
  /** The steps of the run that is shown. */
  run: RunStep[] | undefined;
}

export function StepGraph({ steps, run }: StepGraphProps) {
  const state = new Map(run?.map((s) => [s.step_id, s]));
  const levels = new Set(steps.map((s) => s.level)).size;
  return (
    <Graph
      label={`${plural(steps.length, "step")} on ${plural(levels, "level")}, from left to right`}
      nodes={steps.map((s) => {
        const ran = state.get(s.step_id);
        return {
          id: s.step_id,
          note: noteOf(s, ran),
          tone: ran && ran.status !== "SKIPPED" ? toneOf(ran.status) : "idle",
        };
      })}
      edges={steps.flatMap((s) => s.depends_on.map((from) => ({ from, to: s.step_id })))}
    />
  );
}
