// Live data. A view names what it shows; it is read again every two seconds while the page is
// visible, and at once when the server's event stream says that something changed. Events are
// hints: they do not report leases and waits that expire, or changes by other processes.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ApiError, get, open } from "./api";
import { type Params, queryString, useRoute } from "./router";
import { createStore, useStore } from "./store";

const EVERY_MS = 2000;
const EVENTS_MS = 500; /* the least time between two reads, however many events arrive */
const KEPT_ANSWERS = 50;

export interface Live<T> {
  data: T | undefined;
  error: ApiError | undefined;
  /** True until the first response for this address. */
  loading: boolean;
  reload: () => void;
}

export interface Page<T> {
  items: T[];
  next: string | null;
}

/** Paused by the user: the views do not change, which helps to read a busy list. */
export const paused = createStore(false);

/** The reads of what is visible, with the milliseconds between them. */
const refreshes = new Map<() => void, number>();

/** Reads everything visible again; done after each change that the page makes. */
export function refresh(): void {
  for (const read of [...refreshes.keys()]) read();
}

/** Reads that are rare stay rare, however many events arrive. */
function refreshOften(): void {
  for (const [read, every] of [...refreshes]) if (every <= EVERY_MS) read();
}

// The last responses, so that going back shows the view at once.
const answers = new Map<string, unknown>();

function remember(key: string, value: unknown): void {
  answers.delete(key);
  answers.set(key, value);
  const oldest = answers.keys().next();
  if (answers.size > KEPT_ANSWERS && !oldest.done) answers.delete(oldest.value);
}

/** Forgets all responses; called when another key signs in. */
export function forget(): void {
  answers.clear();
}

export interface LiveOptions {
  /** Milliseconds between reads. 0: only once, and after events; over 2 s: not after events. */
  every?: number;
  /** False: nothing is read, as for a view that waits for another one's answer. */
  when?: boolean;
}

/** Live data from a function of its own; `key` names what it reads. */
export function useLoad<T>(
  key: string,
  load: (signal: AbortSignal) => Promise<T>,
  { every = EVERY_MS, when = true }: LiveOptions = {},
): Live<T> {
  const [state, setState] = useState<{ key: string; data?: T; error?: ApiError; text?: string }>({
    key,
  });
  const loader = useRef(load);
  loader.current = load;
  const [turn, setTurn] = useState(0);

  useEffect(() => {
    if (!when) return;
    let reading: AbortController | null = null;
    let again = false;
    let timer = 0;

    const plan = () => {
      clearTimeout(timer);
      if (every > 0) timer = window.setTimeout(tick, every);
    };
    const read = async () => {
      if (reading) {
        again = true;
        return;
      }
      const mine = (reading = new AbortController());
      try {
        const data = await loader.current(mine.signal);
        remember(key, data);
        const text = JSON.stringify(data);
        // An unchanged response keeps the old objects, and nothing is drawn again.
        setState((old) =>
          old.key === key && old.text === text && !old.error ? old : { key, data, text },
        );
      } catch (e) {
        if (mine.signal.aborted) return;
        const error =
          e instanceof ApiError
            ? e
            : new ApiError(0, { code: "PAGE", source: "page", message: String(e) });
        setState((old) => ({ ...(old.key === key ? old : { key }), error }));
      }
      reading = null;
      if (again) {
        again = false;
        void read();
      } else plan();
    };
    const tick = () => {
      if (document.hidden || paused.get()) plan();
      else void read();
    };
    const shown = () => {
      if (!document.hidden) void read();
    };

    void read();
    refreshes.set(read, every);
    document.addEventListener("visibilitychange", shown);
    return () => {
      clearTimeout(timer);
      reading?.abort();
      refreshes.delete(read);
      document.removeEventListener("visibilitychange", shown);
    };
  }, [key, every, when, turn]);

  const fresh = state.key === key;
  const data = fresh && state.data !== undefined ? state.data : (answers.get(key) as T | undefined);
  const error = fresh ? state.error : undefined;
  const reload = useCallback(() => setTurn((n) => n + 1), []);
  return { data, error, loading: when && data === undefined && error === undefined, reload };
}

/** Live data of one path below /ui/api: useLive<Run>(`/runs/${id}`). */
export function useLive<T>(path: string, params: Params = {}, options: LiveOptions = {}): Live<T> {
  const url = `${path}${queryString(params)}`;
  return useLoad<T>(url, (signal) => get<T>(url, signal), options);
}

/** One page of a listing. The server may answer with few rows and a cursor: more are read then. */
export async function readPage<T>(
  path: string,
  params: Params,
  limit: number,
  signal?: AbortSignal,
): Promise<Page<T>> {
  const items: T[] = [];
  let cursor = params["cursor"];
  for (let reads = 0; reads < 8; reads++) {
    const left = limit - items.length;
    const page = await get<Page<T>>(
      `${path}${queryString({ ...params, cursor, limit: left })}`,
      signal,
    );
    items.push(...page.items);
    cursor = page.next;
    if (page.next === null || items.length >= limit) break;
  }
  return { items, next: typeof cursor === "string" && cursor !== "" ? cursor : null };
}

/** The page of a listing that the URL's cursor names; <Table page={…}> turns the pages. */
export function useList<T>(
  path: string,
  params: Params = {},
  limit = 50,
  options: LiveOptions = {},
): Live<Page<T>> {
  const cursor = useRoute().query.get("cursor");
  const all = { ...params, cursor };
  return useLoad(
    `${path}${queryString({ ...all, limit })}`,
    (s) => readPage<T>(path, all, limit, s),
    options,
  );
}

/** The second that it is, for relative times. */
const now = createStore(Date.now());
setInterval(() => {
  if (!document.hidden) now.set(Date.now());
}, 1000);
export const useNow = (): number => useStore(now);

// ---- the stream of events -----------------------------------------------------------------------

export const streaming = createStore(false);

function eventsRefresh(): () => void {
  let last = 0;
  let timer = 0;
  return () => {
    if (timer !== 0 || paused.get()) return;
    const wait = Math.max(0, last + EVENTS_MS - Date.now());
    timer = window.setTimeout(() => {
      timer = 0;
      last = Date.now();
      refreshOften();
    }, wait);
  };
}

async function follow(signal: AbortSignal, onEvent: () => void): Promise<void> {
  const answer = await open("GET", "/ui/api/stream", { signal });
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (!reader) return;
  streaming.set(true);
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    if (/^event:/m.test(value)) onEvent();
  }
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Keeps the stream open while the page is visible: a browser allows six connections to a server,
 * and hidden tabs should not take them. Returns a function that ends it.
 */
export function startStream(): () => void {
  const onEvent = eventsRefresh();
  let current: AbortController | null = null;
  let ended = false;

  const run = async () => {
    const mine = (current = new AbortController());
    while (!mine.signal.aborted) {
      try {
        await follow(mine.signal, onEvent);
      } catch {
        // An unreachable server is reported by the reads every two seconds; this only tries again.
      }
      streaming.set(false);
      await pause(EVERY_MS);
      if (!mine.signal.aborted) refresh();
    }
  };
  const shown = () => {
    current?.abort();
    if (!document.hidden && !ended) void run();
  };
  document.addEventListener("visibilitychange", shown);
  shown();
  return () => {
    ended = true;
    current?.abort();
    document.removeEventListener("visibilitychange", shown);
  };
}
