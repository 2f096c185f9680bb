// A time relative to now, with the exact one on hover.
import { clockSkew } from "../api";
import { exact, relative } from "../format";
import { useNow } from "../live";

export function Time({ at, none = "–" }: { at: string | null | undefined; none?: string }) {
  const now = useNow();
  if (!at) return <span class="muted">{none}</span>;
  return (
    <time dateTime={at} title={exact(at)}>
      {relative(Date.parse(at), now + clockSkew)}
    </time>
  );
}
