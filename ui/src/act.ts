// Changes that the page makes: send, say what happened, read the view again.
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

/** Tells something at the foot of the page. What went well disappears by itself. */
export function notify(tone: Notice["tone"], text: string): void {
  const id = ++lastId;
  notices.set([...notices.get().slice(-3), { id, tone, text }]);
  if (tone === "ok") setTimeout(() => dismiss(id), 5000);
}

/** What went wrong, for people: the server's message and its code. */
export function explain(e: unknown): string {
  if (!(e instanceof ApiError)) return String(e);
  return e.status === 0 ? `${e.message}: try again` : `${e.message} (${e.code})`;
}

/** Sends a change and tells `done`. Undefined if it failed: the error has been shown. */
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
