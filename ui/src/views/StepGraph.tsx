// The steps of a pipeline as a drawing, with their states in a run. It says no more than the table
// of steps beside it does, so to a screen reader it is one picture.
import { toneOf } from "../components";
import { duration, plural } from "../format";
import { BOX_HEIGHT, BOX_WIDTH, layOut } from "./graph";
import type { RunStep, Step } from "./pipeline_types";

const NAME_MAX = 22;

const short = (text: string): string => (text.length > NAME_MAX ? `${text.slice(0, NAME_MAX - 1)}…` : text);

function stateOf(run: RunStep | undefined): string {
  if (!run || run.status === "PENDING") return "";
  const took = run.duration_ms === null ? "" : `, ${duration(run.duration_ms)}`;
  return ` · ${run.status.toLowerCase()}${took}`;
}

interface StepGraphProps {
  steps: Step[];
  /** The steps of the run that is shown. */
  run: RunStep[] | undefined;
}

export function StepGraph({ steps, run }: StepGraphProps) {
  const graph = layOut(steps.map((s) => ({ id: s.step_id, level: s.level, needs: s.depends_on })));
  const step = new Map(steps.map((s) => [s.step_id, s]));
  const state = new Map(run?.map((s) => [s.step_id, s]));
  const levels = new Set(steps.map((s) => s.level)).size;
  return (
    <div class="step-graph" tabIndex={0} role="group" aria-label="Step graph">
      <svg
        role="img"
        aria-label={`${plural(steps.length, "step")} on ${plural(levels, "level")}, from left to right`}
        width={graph.width}
        height={graph.height}
        viewBox={`0 0 ${graph.width} ${graph.height}`}
      >
        {graph.curves.map((c) => (
          <path key={`${c.from} ${c.to}`} class="step-curve" d={c.path} />
        ))}
        {graph.boxes.map((b) => {
          const ran = state.get(b.id);
          return (
            <g key={b.id} class={`step-box ${ran ? toneOf(ran.status === "SKIPPED" ? "PENDING" : ran.status) : "idle"}`} transform={`translate(${b.x} ${b.y})`}>
              <title>{ran?.error_message ? `${b.id}: ${ran.error_message}` : b.id}</title>
              <rect width={BOX_WIDTH} height={BOX_HEIGHT} rx="6" />
              <rect class="step-mark" width="4" height={BOX_HEIGHT} rx="2" />
              <text x="14" y="20" class="step-name">
                {short(b.id)}
              </text>
              <text x="14" y="37" class="step-state">
                {`${step.get(b.id)?.type ?? ""}${stateOf(ran)}`}
              </text>
            </g>
          );
        })}
      </svg>
    </div>
  );
}
