// The output of a run as it comes: read with a wait, so that new lines appear at once.
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, get } from "../api";
import { bytes } from "../format";
import { ErrorBox } from "./ErrorBox";

interface Part {
  next_offset: number;
  text: string | null;
  text_base64?: string;
  end: boolean;
}

const KEPT = 512 * 1024; /* characters shown; older ones are cut */
const RETRY_MS = 2000;
const WAIT = "20s";

/** Escape sequences for colours and cursors mean nothing here. */
const plain = (text: string): string => text.replace(/\x1b\[[0-9;?]*[ -/]*[@-~]/g, "");

function textOf(part: Part): string {
  if (typeof part.text === "string") return plain(part.text);
  if (part.text_base64 === undefined) return part.text === null ? "" : JSON.stringify(part.text);
  const raw = Uint8Array.from(atob(part.text_base64), (c) => c.charCodeAt(0));
  return plain(new TextDecoder().decode(raw));
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

interface Shown {
  text: string;
  offset: number;
  cut: boolean;
  end: boolean;
  error?: ApiError;
}

function useOutput(path: string): Shown {
  const [shown, setShown] = useState<Shown>({ text: "", offset: 0, cut: false, end: false });
  useEffect(() => {
    const stop = new AbortController();
    const follow = async () => {
      let offset = 0;
      let wait = "0s"; // the first part comes at once
      while (!stop.signal.aborted) {
        try {
          const part = await get<Part>(`${path}?offset=${offset}&wait=${wait}`, stop.signal);
          offset = part.next_offset;
          wait = WAIT;
          const more = textOf(part);
          setShown((old) => {
            const text = old.text + more;
            return {
              text: text.slice(-KEPT),
              cut: old.cut || text.length > KEPT,
              offset,
              end: part.end,
            };
          });
          if (part.end) return;
        } catch (e) {
          if (stop.signal.aborted) return;
          if (e instanceof ApiError) setShown((old) => ({ ...old, error: e }));
          await pause(RETRY_MS);
        }
      }
    };
    setShown({ text: "", offset: 0, cut: false, end: false });
    void follow();
    return () => stop.abort();
  }, [path]);
  return shown;
}

/** `path` is that of a log below /ui/api. */
export function Output({ path }: { path: string }) {
  const { text, offset, cut, end, error } = useOutput(path);
  const box = useRef<HTMLPreElement>(null);
  const follows = useRef(true);
  useEffect(() => {
    if (follows.current) box.current?.scrollTo(0, box.current.scrollHeight);
  }, [text]);
  const onScroll = () => {
    const b = box.current;
    if (b) follows.current = b.scrollHeight - b.scrollTop - b.clientHeight < 20;
  };
  return (
    <>
      <ErrorBox error={error} title="Cannot read the output" />
      {cut && <p class="muted">Only the end is shown, of {bytes(offset)}.</p>}
      <pre ref={box} class="output" tabIndex={0} role="log" aria-label="Output" onScroll={onScroll}>
        {text === "" ? (end ? "No output." : "No output yet.") : text}
      </pre>
    </>
  );
}
