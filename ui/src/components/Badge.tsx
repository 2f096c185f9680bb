// A state as a word with a colour; the colour is never the only sign.
export type Tone = "ok" | "warn" | "bad" | "busy" | "idle";

const TONES: Record<string, Tone> = {
  COMPLETED: "ok",
  RUNNING: "busy",
  PENDING: "idle",
  FAILED: "bad",
  TIMEOUT: "bad",
  CANCELLED: "idle",
  INTERRUPTED: "warn",
  READY: "idle",
  SCHEDULED: "idle",
  READ: "idle",
  held: "ok",
  waiting: "idle",
  offered: "busy",
  cancelling: "warn",
  closing: "warn",
  expired: "warn",
  broken: "bad",
  released: "idle",
  ok: "ok",
  error: "bad",
  warning: "warn",
  info: "idle",
  paused: "warn",
};

export const toneOf = (state: string): Tone => TONES[state] ?? TONES[state.toUpperCase()] ?? "idle";

export function Badge({ state, tone, title }: { state: string; tone?: Tone; title?: string }) {
  return (
    <span class={`badge ${tone ?? toneOf(state)}`} title={title}>
      {state.toLowerCase().replaceAll("_", " ")}
    </span>
  );
}
