// Who is signed in, and what the key may do.
import { ApiError, open, signedInAs, signedOut } from "./api";
import { createStore } from "./store";

export interface Session {
  tenant: string;
  key_id: string;
  permissions: string[];
  /** The key may only use names that start with this; empty: all names. */
  prefix: string | null;
  expires_at: string;
  version: string;
  demo: boolean;
}

export type SessionState =
  | { state: "unknown" }
  | { state: "out"; message?: string }
  | { state: "unreachable"; message: string }
  | { state: "in"; session: Session };

export const sessionState = createStore<SessionState>({ state: "unknown" });

function leave(state: SessionState): void {
  signedInAs.key = "";
  sessionState.set(state);
}

signedOut.call = () => {
  if (sessionState.get().state === "in") {
    leave({ state: "out", message: "Your session has ended. Sign in again." });
  }
};

const isSession = (answer: Response) => answer.json() as Promise<Session>;

async function enter(answer: Response): Promise<void> {
  const session = await isSession(answer);
  signedInAs.key = session.key_id;
  sessionState.set({ state: "in", session });
}

/** Signs in with an API key or a one-time link; the error says why it was refused. */
export async function signIn(credentials: { key: string } | { link: string }): Promise<void> {
  const headers = { "Content-Type": "application/json" };
  await enter(await open("POST", "/ui/session", { headers, body: JSON.stringify(credentials) }));
}

export async function signOut(): Promise<void> {
  try {
    await open("DELETE", "/ui/session");
  } finally {
    leave({ state: "out", message: "Signed out." });
  }
}

const LINK = /^#link=(.+)$/;

/** The token of a one-time link (#link=TOKEN), which is removed from the address at once. */
function takeLink(): string | null {
  const found = LINK.exec(location.hash);
  if (!found) return null;
  history.replaceState(null, "", "#/");
  dispatchEvent(new HashChangeEvent("hashchange"));
  const token = found[1] ?? "";
  try {
    return decodeURIComponent(token);
  } catch {
    return token; // not one of ours: the server refuses it
  }
}

/** A link may be opened in a tab that shows the page already. */
export function watchLinks(): void {
  addEventListener("hashchange", () => {
    if (LINK.test(location.hash)) void startSession();
  });
}

/** Resumes the session of the cookie, or signs in with the link of the address. */
export async function startSession(): Promise<void> {
  const link = takeLink();
  try {
    if (link) await signIn({ link });
    else await enter(await open("GET", "/ui/session"));
  } catch (e) {
    const error = e as ApiError;
    if (error.status === 0 || error.status >= 500) {
      sessionState.set({ state: "unreachable", message: error.message });
    } else if (link) {
      sessionState.set({
        state: "out",
        message: "This link was used already or has expired. Sign in with an API key.",
      });
    } else {
      sessionState.set({ state: "out" });
    }
  }
}

export function isDemo(): boolean {
  const now = sessionState.get();
  return now.state === "in" && now.session.demo;
}

const ROLES = ["read", "write", "operator", "admin"];

/**
 * Whether the key may do what needs this permission: a role, or an app's own such as "admin:usage".
 * `route` is the permission named after the route ("lock:break"), which a key can have by itself.
 * `names` is the x-key-prefix of the route: a key with a prefix must cover it, which none does if
 * it is empty.
 */
export function can(permission: string, route?: string, names?: string): boolean {
  const now = sessionState.get();
  if (now.state !== "in") return false;
  if (names !== undefined && !names.startsWith(now.session.prefix ?? "")) return false;
  const mine = now.session.permissions;
  if (route !== undefined && mine.includes(route)) return true;
  if (permission === "any" || mine.includes("admin")) return true;
  const rank = ROLES.indexOf(permission);
  if (rank >= 0) return mine.some((p) => ROLES.indexOf(p) >= rank);
  return mine.some((p) => p === permission || p.startsWith(`${permission}:`));
}
