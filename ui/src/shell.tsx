// The frame of every view: navigation, the state of the connection, notices, help.
import { useEffect, useRef, useState } from "preact/hooks";
import { dismiss, notices } from "./act";
import { connection } from "./api";
import { Icon } from "./components";
import { DialogHost } from "./components/Dialog";
import { relative } from "./format";
import { helpShown, onKey } from "./keyboard";
import { paused, refresh, startStream, useNow } from "./live";
import { href, match, useRoute } from "./router";
import { type Session, signOut } from "./session";
import { useStore } from "./store";
import { nextTheme, theme } from "./theme";
import { GROUPS, isOffered, type View, VIEWS } from "./views";

const isWithin = (path: string, v: View): boolean =>
  path === v.path || (v.path !== "/" && path.startsWith(`${v.path}/`));

function Nav({ path, version, onGo }: { path: string; version: string; onGo: () => void }) {
  return (
    <nav class="side" aria-label="Views">
      {GROUPS.map((group) => {
        const views = VIEWS.filter((v) => v.group === group && isOffered(v));
        return (
          views.length > 0 && (
            <div key={group} class="nav-group">
              <h2>{group}</h2>
              {views.map((v) => (
                <a
                  key={v.path}
                  href={href(v.path)}
                  aria-current={isWithin(path, v) ? "page" : undefined}
                  onClick={onGo}
                >
                  {v.title}
                </a>
              ))}
            </div>
          )
        );
      })}
      <p class="version muted">interlock {version}</p>
    </nav>
  );
}

/** Shows whether the view is up to date. */
function Live() {
  const now = useStore(connection);
  const isPaused = useStore(paused);
  const toggle = () => {
    paused.set(!isPaused);
    if (isPaused) refresh();
  };
  const state = now.state === "lost" ? "lost" : isPaused ? "paused" : "live";
  return (
    <span class="live">
      <span class={`live-dot ${state}`} aria-hidden="true" />
      <span role="status">
        {state === "lost" ? "Connection lost" : isPaused ? "Paused" : "Live"}
      </span>
      <button
        type="button"
        class="icon-button"
        aria-label={isPaused ? "Resume updates" : "Pause updates"}
        title={isPaused ? "Resume updates" : "Pause updates"}
        onClick={toggle}
      >
        <Icon name={isPaused ? "play" : "pause"} />
      </button>
    </span>
  );
}

function LostBanner() {
  const now = useStore(connection);
  const second = useNow();
  if (now.state === "live") return null;
  return (
    <p class="lost-banner" role="alert">
      <Icon name="warn" /> Connection lost {relative(now.since, second)}: {now.why}. What you see is
      from before; the page tries again every two seconds.
    </p>
  );
}

function Notices() {
  return (
    <div class="notices" role="status" aria-live="polite">
      {useStore(notices).map((n) => (
        <p key={n.id} class={`notice ${n.tone}`}>
          <span>{n.text}</span>
          <button
            type="button"
            class="icon-button"
            aria-label="Dismiss"
            onClick={() => dismiss(n.id)}
          >
            <Icon name="close" />
          </button>
        </p>
      ))}
    </div>
  );
}

const KEYS: [string, string][] = [
  ["j / k", "next, previous row"],
  ["Enter", "open the row"],
  ["/", "filter"],
  ["?", "this help"],
];

function Help() {
  const dialog = useRef<HTMLDialogElement>(null);
  const shown = useStore(helpShown);
  useEffect(() => {
    if (shown) dialog.current?.showModal();
  }, [shown]);
  if (!shown) return null;
  const views = VIEWS.filter((v) => v.key !== undefined && isOffered(v));
  return (
    <dialog
      ref={dialog}
      class="dialog"
      aria-labelledby="help-title"
      onClose={() => helpShown.set(false)}
    >
      <h2 id="help-title">Keyboard</h2>
      <dl class="keys">
        {[...KEYS, ...views.map((v): [string, string] => [`g ${v.key}`, v.title])].map(
          ([keys, does]) => (
            <div key={keys}>
              <dt>
                <kbd>{keys}</kbd>
              </dt>
              <dd>{does}</dd>
            </div>
          ),
        )}
      </dl>
      <div class="dialog-buttons">
        <button type="button" class="primary" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </div>
    </dialog>
  );
}

function Tools({ session }: { session: Session }) {
  const look = useStore(theme);
  return (
    <div class="tools">
      <Live />
      <button
        type="button"
        class="icon-button"
        aria-label={`Theme: ${look}`}
        title={`Theme: ${look}`}
        onClick={nextTheme}
      >
        <Icon name="theme" />
      </button>
      <button
        type="button"
        class="icon-button"
        aria-label="Keyboard help"
        title="Keyboard help (?)"
        onClick={() => helpShown.set(true)}
      >
        <Icon name="help" />
      </button>
      <span class="who" title={`Key ${session.key_id}: ${session.permissions.join(", ")}`}>
        {session.tenant}
      </span>
      <button
        type="button"
        class="icon-button"
        aria-label="Sign out"
        title="Sign out"
        onClick={() => void signOut()}
      >
        <Icon name="exit" />
      </button>
    </div>
  );
}

function NotHere() {
  return (
    <div class="empty">
      <h1>Page not found</h1>
      <p>
        This address does not exist, or your key may not see it.{" "}
        <a href={href("/")}>Go to the overview</a>.
      </p>
    </div>
  );
}

export function Shell({ session }: { session: Session }) {
  const { path } = useRoute();
  const [menu, setMenu] = useState(false);
  const main = useRef<HTMLElement>(null);
  useEffect(startStream, []);
  useEffect(() => {
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);

  let found: { view: View; names: Record<string, string> } | undefined;
  for (const view of VIEWS) {
    const names = match(view.path, path);
    if (names && isOffered(view)) {
      found = { view, names };
      break;
    }
  }
  const title = found?.view.title ?? "Page not found";
  useEffect(() => {
    document.title = `${title} · Interlock`;
    main.current?.scrollTo(0, 0);
  }, [title, path]);

  const Component = found?.view.component;
  return (
    <div class={menu ? "shell menu-open" : "shell"}>
      <header class="top">
        <a class="skip" href="#main" onClick={(e) => (e.preventDefault(), main.current?.focus())}>
          Skip to content
        </a>
        <button
          type="button"
          class="icon-button menu"
          aria-label="Menu"
          aria-expanded={menu}
          onClick={() => setMenu(!menu)}
        >
          <Icon name={menu ? "close" : "menu"} />
        </button>
        <a class="brand" href={href("/")}>
          <img src="favicon.svg" alt="" width="20" height="20" /> Interlock
        </a>
        {session.demo && <span class="badge busy">demo</span>}
        <Tools session={session} />
      </header>
      <Nav path={path} version={session.version} onGo={() => setMenu(false)} />
      <main id="main" ref={main} tabIndex={-1}>
        <LostBanner />
        {found && Component ? <Component key={path} names={found.names} /> : <NotHere />}
      </main>
      <Notices />
      <DialogHost />
      <Help />
    </div>
  );
}
