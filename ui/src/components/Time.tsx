// A time relative to now, with the exact one on hover.
import { clockSkew } from "../api";
import { exact, relative } from "../format";
import { useNow } from "../live";

interface TimeProps {
  at: string | null | undefined;
  /** Shown if there is no time. */
  none?: string;
  /** Shown instead of the relative time. */
  children?: string;
}

export function Time({ at, none = "–", children }: TimeProps) {
  const now = useNow();
  if (!at) return <span class="muted">{children ?? none}</span>;
  return (
    <time dateTime={at} title={exact(at)}>
      {children ?? relative(Date.parse(at), now + clockSkew)}
    </time>
  );
}

/** The time this many ms ago (in the future if negative): the server sends some times so. */
export const timeAgo = (ms: number): string =>
  new Date(Date.now() + clockSkew - ms).toISOString();
