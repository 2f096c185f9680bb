// Why a view is empty, and what to do next.
import type { ComponentChildren } from "preact";

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children && <div class="empty-text">{children}</div>}
    </div>
  );
}

/** A command to copy from, as empty states show. */
export function Command({ children }: { children: string }) {
  return (
    <pre class="command" tabIndex={0}>
      {children}
    </pre>
  );
}
