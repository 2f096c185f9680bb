// The parts that views are made of: a head with actions, panels, facts.
import type { ComponentChildren } from "preact";

interface HeadProps {
  title: ComponentChildren;
  /** The view above this one. */
  above?: { title: string; href: string };
  children?: ComponentChildren;
}

/** The heading of a view, its filters and its buttons. */
export function Head({ title, above, children }: HeadProps) {
  return (
    <header class="head">
      <div class="head-title">
        {above && (
          <>
            <a href={above.href}>{above.title}</a>
            <span aria-hidden="true">/</span>
          </>
        )}
        <h1>{title}</h1>
      </div>
      <div class="head-tools">{children}</div>
    </header>
  );
}

export function Panel({
  title,
  tools,
  children,
}: {
  title: string;
  tools?: ComponentChildren;
  children: ComponentChildren;
}) {
  return (
    <section class="panel" aria-label={title}>
      <div class="panel-head">
        <h2>{title}</h2>
        {tools}
      </div>
      {children}
    </section>
  );
}

/** Names and values of one object; entries without a value are not shown. */
export function Facts({ of }: { of: [string, ComponentChildren][] }) {
  return (
    <dl class="facts">
      {of
        .filter(
          ([, value]) => value !== null && value !== undefined && value !== "" && value !== false,
        )
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}
