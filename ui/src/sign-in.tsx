// The way in: an API key, which the server exchanges for a cookie.
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "./api";
import { Command } from "./components";
import { forget } from "./live";
import { signIn } from "./session";

function why(error: ApiError): string {
  if (error.status === 401) return "Unknown, revoked or expired key.";
  if (error.status === 429)
    return "Too many failed attempts from this address. Wait a minute, then try again.";
  return `Cannot sign in: ${error.message}`;
}

export function SignIn({ message }: { message: string | undefined }) {
  const [error, setError] = useState<string>();
  const [busy, setBusy] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.focus(), []);
  const submit = async (e: SubmitEvent) => {
    e.preventDefault();
    const key = input.current?.value.trim() ?? "";
    if (key === "") return;
    setBusy(true);
    setError(undefined);
    forget(); // another key may see less
    try {
      await signIn({ key });
    } catch (failure) {
      setError(why(failure as ApiError));
      setBusy(false);
    }
  };
  return (
    <main class="sign-in">
      <form onSubmit={submit}>
        <h1>
          <img src="favicon.svg" alt="" width="28" height="28" /> Interlock
        </h1>
        {message !== undefined && <p role="status">{message}</p>}
        <label class="field">
          <span>API key</span>
          <input
            ref={input}
            name="key"
            type="password"
            required
            autocomplete="current-password"
            spellcheck={false}
            aria-describedby={error ? "sign-in-error" : undefined}
          />
        </label>
        {error !== undefined && (
          <p id="sign-in-error" class="error-text" role="alert">
            {error}
          </p>
        )}
        <button type="submit" class="primary" disabled={busy}>
          Sign in
        </button>
        <details>
          <summary>How to get a key</summary>
          <p>On the server's machine:</p>
          <Command>interlock key create --admin</Command>
          <p>A key with the role read can view everything but change nothing.</p>
        </details>
      </form>
    </main>
  );
}
