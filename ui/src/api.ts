// Requests to the server. The page uses the route table of /api/v1 behind /ui/api, authorised by
// its cookie and the header X-Interlock-Page.
import { createStore } from "./store";

export interface ErrorBody {
  code: string;
  source: string;
  message: string;
  details?: Record<string, unknown>;
}

/** A request that the server refused (status > 0), or that did not reach it (status 0). */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly body: ErrorBody,
  ) {
    super(body.message);
  }
  get code(): string {
    return this.body.code;
  }
  get details(): Record<string, unknown> {
    return this.body.details ?? {};
  }
}

export type Method = "GET" | "POST" | "PUT" | "DELETE";

export type Connection = { state: "live" } | { state: "lost"; since: number; why: string };

/** Whether the last request reached the server. */
export const connection = createStore<Connection>({ state: "live" });

/** The id of the key that this tab is signed in with; session.ts sets it. */
export const signedInAs = { key: "" };

/** Called when the server no longer knows the session; session.ts sets it. */
export const signedOut = { call: (): void => {} };

/** How far the server's clock is ahead of this machine's, in ms. */
export let clockSkew = 0;

function noteClock(headers: Headers): void {
  const date = Date.parse(headers.get("Date") ?? "");
  const skew = date - Date.now();
  // The header has whole seconds, so a smaller difference says nothing.
  clockSkew = Number.isNaN(date) || Math.abs(skew) < 2000 ? 0 : skew;
}

function lost(why: string): void {
  if (connection.get().state === "live") connection.set({ state: "lost", since: Date.now(), why });
}

async function readError(answer: Response): Promise<ApiError> {
  const text = await answer.text();
  try {
    const body = (JSON.parse(text) as { error: ErrorBody }).error;
    if (typeof body.code === "string") return new ApiError(answer.status, body);
  } catch {
    // a proxy's page; reported below
  }
  const message = `the server answered ${answer.status} ${answer.statusText}`.trim();
  return new ApiError(answer.status, { code: `HTTP_${answer.status}`, source: "request", message });
}

const isFromProxy = (e: ApiError) => e.code === "HTTP_502" || e.code === "HTTP_504";

/** The response to a request; an ApiError is thrown for any status but 2xx. */
export async function open(
  method: Method,
  path: string,
  options: RequestInit = {},
): Promise<Response> {
  // Another tab may have signed in with another key, which replaces the cookie of this one.
  const mine: Record<string, string> =
    path.startsWith("/ui/api/") && signedInAs.key ? { "X-Interlock-Session": signedInAs.key } : {};
  let answer: Response;
  try {
    answer = await fetch(path, {
      ...options,
      method,
      credentials: "same-origin",
      cache: "no-store",
      headers: { "X-Interlock-Page": "1", ...mine, ...options.headers },
    });
  } catch (e) {
    if (e instanceof DOMException && e.name === "AbortError") throw e;
    const message = "the server cannot be reached";
    lost(message);
    throw new ApiError(0, { code: "UNREACHABLE", source: "page", message });
  }
  if (!answer.ok) {
    const error = await readError(answer);
    if (isFromProxy(error)) lost(error.message);
    else connection.set({ state: "live" });
    if (answer.status === 401 && path.startsWith("/ui/api/")) signedOut.call();
    throw error;
  }
  noteClock(answer.headers);
  connection.set({ state: "live" });
  return answer;
}

/** Reads a path below /ui/api, such as "/locks?limit=50". */
export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  const answer = await open("GET", `/ui/api${path}`, signal ? { signal } : {});
  return (await answer.json()) as T;
}

/** 128 random bits. crypto.randomUUID does not exist on plain HTTP from another machine. */
export function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
}

/**
 * Sends a change below /ui/api. A lost answer is asked for once more with the same Idempotency-Key,
 * so that the effect happens once. Batches take no such key: their ops must be repeatable.
 */
export async function send<T>(method: Method, path: string, body?: unknown): Promise<T> {
  const headers: Record<string, string> =
    path === "/batch" ? {} : { "Idempotency-Key": randomKey() };
  const options: RequestInit = { headers };
  if (body !== undefined) {
    options.body = JSON.stringify(body);
    headers["Content-Type"] = "application/json";
  }
  const once = () => open(method, `/ui/api${path}`, options);
  let answer: Response;
  try {
    answer = await once();
  } catch (e) {
    if (!(e instanceof ApiError) || e.status !== 0) throw e;
    answer = await once();
  }
  const text = await answer.text();
  return (text === "" ? {} : JSON.parse(text)) as T;
}
