// The error of reading a view. Older data stays visible beside it. An unreachable server is
// reported once, above the view.
import { ApiError } from "../api";
import { Icon } from "./Icon";

const HINTS: Record<string, string> = {
  FORBIDDEN: "Sign in with a key that has the permission, or ask an administrator for it.",
  STORE_UNAVAILABLE: "Check that the store is running. The page recovers automatically.",
  NOT_FOUND: "It does not exist or was removed; ended items are kept for a limited time.",
  RATE_LIMITED: "The page is slowing down its requests.",
};

export function ErrorBox({ error, title }: { error: ApiError | undefined; title?: string }) {
  if (!error || error.code === "UNREACHABLE") return null;
  const needs = error.details["permission"] ?? error.details["role"];
  return (
    <div class="error-box" role="alert">
      <Icon name="warn" />
      <div>
        <p>
          <strong>{title ?? "Cannot read this"}:</strong> {error.message}{" "}
          <code class="muted">{error.code}</code>
        </p>
        {typeof needs === "string" && <p>Permission needed: {needs}</p>}
        {HINTS[error.code] && <p class="muted">{HINTS[error.code]}</p>}
      </div>
    </div>
  );
}
