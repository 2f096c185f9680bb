// Changes made by the page: send one, report the outcome, read the view again.
import { ApiError, type Method, send } from "./api";
import { refresh } from "./live";
import { createStore } from "./store";

export interface Notice {
  id: number;
  tone: "ok" | "bad";
  text: string;
}

export const notices = createStore<Notice[]>([]);

let lastId = 0;

export function dismiss(id: number): void {
  notices.set(notices.get().filter((n) => n.id !== id));
}

/** Shows a notice at the foot of the page. A notice of success disappears by itself. */
export function notify(tone: Notice["tone"], text: string): void {
  const id = ++lastId;
  notices.set([...notices.get().slice(-3), { id, tone, text }]);
  if (tone === "ok") setTimeout(() => dismiss(id), 5000);
}

/** The message of an error for people: the server's text and code. */
export function explain(e: unknown): string {
  if (!(e instanceof ApiError)) return String(e);
  return e.status === 0 ? `${e.message}; try again` : `${e.message} (${e.code})`;
}

/** Sends a change, then shows `done`. Undefined if it failed: the error has been shown. */
export async function act<T = unknown>(
  method: Method,
  path: string,
  body?: unknown,
  done?: string | ((answer: T) => string),
): Promise<T | undefined> {
  try {
    const answer = await send<T>(method, path, body);
    if (done !== undefined) notify("ok", typeof done === "string" ? done : done(answer));
    return answer;
  } catch (e) {
    notify("bad", explain(e));
    return undefined;
  } finally {
    refresh();
  }
}
