// Who did something: an API key by its name where the reader may list keys, else by its id.
import { Copyable } from "../components";
import { shortId } from "../format";
import { type Page, useLive } from "../live";
import { can } from "../session";
import { isId } from "./pipeline_types";

/** The names of the keys by id, for those who may list them. */
export function useKeyNames(): Map<string, string> {
  const { data } = useLive<Page<{ id: string; name: string | null }>>(
    "/admin/api-keys",
    { limit: 1000 },
    { every: 30_000, when: can("admin", "admin:key_list") },
  );
  return new Map(data?.items.flatMap((k) => (k.name ? [[k.id, k.name]] : [])));
}

export function Who({ who, names }: { who: string | null; names: Map<string, string> }) {
  if (who === null || who === "") return <span class="muted">–</span>;
  if (!isId(who)) return <span title={who}>{who}</span>;
  return (
    <Copyable value={who} label="who" mono={false}>
      {names.get(who) ?? shortId(who)}
    </Copyable>
  );
}
