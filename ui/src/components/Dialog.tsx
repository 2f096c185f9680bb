// Questions before a change that affects others. `confirm` asks, runs the change and keeps the
// dialog open with the error if it failed.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { explain, notify } from "../act";
import { refresh } from "../live";
import { createStore, useStore } from "../store";

export interface Question {
  title: string;
  text: ComponentChildren;
  /** The name of the button that does it: "Break lock". */
  label: string;
  danger?: boolean;
  /** Whether a reason is asked for; it is recorded in the audit log. */
  reason?: "required" | "optional";
  /** More fields, below the text; their values are read by name from the form. */
  fields?: ComponentChildren;
  /** Makes the change, and returns the text of its notice. */
  run: (reason: string, form: FormData) => Promise<string>;
}

const asked = createStore<Question | null>(null);

export const confirm = (question: Question): void => asked.set(question);

function Reason({ how }: { how: "required" | "optional" }) {
  return (
    <label class="field">
      <span>Reason{how === "optional" && <span class="muted"> (optional)</span>}</span>
      <input
        name="reason"
        type="text"
        autofocus
        required={how === "required"}
        maxLength={200}
        autocomplete="off"
      />
      <small class="muted">Kept in the audit log.</small>
    </label>
  );
}

function Asking({ question }: { question: Question }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string>();
  useEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  const submit = async (e: SubmitEvent) => {
    e.preventDefault();
    const form = new FormData(e.currentTarget as HTMLFormElement);
    setBusy(true);
    setError(undefined);
    try {
      notify("ok", await question.run(String(form.get("reason") ?? "").trim(), form));
      dialog.current?.close();
    } catch (failure) {
      setError(explain(failure));
    }
    setBusy(false);
    refresh();
  };
  return (
    <dialog
      ref={dialog}
      class="dialog"
      aria-labelledby="dialog-title"
      onClose={() => asked.set(null)}
    >
      <form onSubmit={submit}>
        <h2 id="dialog-title">{question.title}</h2>
        <div class="dialog-text">{question.text}</div>
        {question.fields}
        {question.reason && <Reason how={question.reason} />}
        {error !== undefined && (
          <p class="error-text" role="alert">
            {error}
          </p>
        )}
        <div class="dialog-buttons">
          <button type="button" onClick={() => dialog.current?.close()}>
            {question.danger ? "Keep as is" : "Cancel"}
          </button>
          <button type="submit" class={question.danger ? "danger" : "primary"} disabled={busy}>
            {question.label}
          </button>
        </div>
      </form>
    </dialog>
  );
}

export function DialogHost() {
  const question = useStore(asked);
  return question && <Asking question={question} />;
}
