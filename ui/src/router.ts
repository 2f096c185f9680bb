// The state of the page is its URL: #/path?name=value. The server knows one address only, so the
// route is in the fragment. Filters, tabs and cursors are parameters of it.
import { createStore, useStore } from "./store";

export interface Route {
  path: string;
  query: URLSearchParams;
}

export type Params = Record<string, string | number | boolean | null | undefined>;

function read(): Route {
  const hash = location.hash.replace(/^#/, "");
  const [path = "", query = ""] = hash.split(/\?(.*)/s);
  return { path: path.startsWith("/") ? path : "/", query: new URLSearchParams(query) };
}

const route = createStore<Route>(read());

addEventListener("hashchange", () => route.set(read()));

/** Parameters as a query string with its "?", or "" if none is set. */
export function queryString(params: Params): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined && value !== null && value !== "" && value !== false) {
      query.set(name, String(value));
    }
  }
  const text = query.toString();
  return text === "" ? "" : `?${text}`;
}

/** The address of a view: href("/runs/:id", { id }, { tab: "log" }). */
export function href(path: string, names: Record<string, string> = {}, params: Params = {}): string {
  const filled = path.replace(/:([a-z_]+)/g, (_, name: string) => encodeURIComponent(names[name] ?? ""));
  return `#${filled}${queryString(params)}`;
}

export function navigate(to: string, replace = false): void {
  const hash = to.startsWith("#") ? to : `#${to}`;
  if (replace) history.replaceState(null, "", hash);
  else history.pushState(null, "", hash);
  route.set(read());
}

export const useRoute = (): Route => useStore(route);

/** The names of a pattern that a path matches, or null. */
export function match(pattern: string, path: string): Record<string, string> | null {
  const want = pattern.split("/");
  const have = path.split("/");
  if (want.length !== have.length) return null;
  const names: Record<string, string> = {};
  for (const [i, part] of want.entries()) {
    const value = have[i] ?? "";
    if (!part.startsWith(":")) {
      if (part !== value) return null;
      continue;
    }
    try {
      names[part.slice(1)] = decodeURIComponent(value);
    } catch {
      return null; // a % that starts no escape
    }
  }
  return names;
}

/**
 * Sets parameters of the current view. A filter replaces the history entry; whatever changes a
 * filter also goes back to the first page.
 */
export function setParams(changes: Params, { push = false, keepCursor = false } = {}): void {
  const { path, query } = route.get();
  const params: Params = Object.fromEntries(query);
  if (!keepCursor) delete params["cursor"];
  navigate(`${path}${queryString({ ...params, ...changes })}`, !push);
}

/** One parameter of the current view, "" if it is not set, and a function that sets it. */
export function useParam(name: string): [string, (value: string) => void] {
  const { query } = useRoute();
  return [query.get(name) ?? "", (value) => setParams({ [name]: value })];
}
