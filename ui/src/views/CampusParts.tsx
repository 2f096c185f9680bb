// Parts shared by the views of the campus.
import { useState } from "preact/hooks";
import { act } from "../act";
import { type Tone } from "../components";

const TONES: Record<string, Tone> = {
  ENROLLMENT_OPEN: "busy",
  CHECK_IN_OPEN: "busy",
  IN_PROGRESS: "busy",
  COMPLETED: "warn" /* not paid yet */,
  REWARDS_DISTRIBUTED: "ok",
  CONFIRMED: "ok",
  WAITLISTED: "warn",
};

export const campusTone = (state: string): Tone => TONES[state] ?? "idle";

interface UserFormProps {
  /** The buttons: a title, and where to post the user. */
  actions: { title: string; path: string; done: string }[];
}

/** A form for the id of a user, with buttons for actions on that user. */
export function UserForm({ actions }: UserFormProps) {
  const [user, setUser] = useState("");
  const [busy, setBusy] = useState(false);
  const go = async (path: string, done: string) => {
    setBusy(true);
    await act("POST", path, { user: user.trim() }, done);
    setBusy(false);
  };
  const first = actions[0];
  const submit = (e: SubmitEvent) => {
    e.preventDefault();
    if (first) void go(first.path, first.done);
  };
  return (
    <form onSubmit={submit}>
      <label class="field">
        <span>Id of a user</span>
        <input
          type="text"
          value={user}
          required
          autocomplete="off"
          spellcheck={false}
          onInput={(e) => setUser(e.currentTarget.value)}
        />
      </label>
      <p class="inline">
        {actions.map((a, i) => (
          <button
            key={a.path}
            type={i === 0 ? "submit" : "button"}
            class={i === 0 ? "primary" : ""}
            disabled={busy || user.trim() === ""}
            onClick={i === 0 ? undefined : () => void go(a.path, a.done)}
          >
            {a.title}
          </button>
        ))}
      </p>
    </form>
  );
}
