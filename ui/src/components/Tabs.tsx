// Views of one object side by side; the chosen one is in the URL.
import { href, useRoute } from "../router";

export interface Tab {
  id: string;
  title: string;
  count?: string | undefined;
}

/** `name` is the parameter of the URL; the first tab is chosen when it is not set. */
export function Tabs({ tabs, name = "tab", label }: { tabs: Tab[]; name?: string; label: string }) {
  const { path, query } = useRoute();
  const now = query.get(name) ?? tabs[0]?.id;
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map((tab) => {
        const params = { ...Object.fromEntries(query), cursor: null, [name]: tab.id === tabs[0]?.id ? null : tab.id };
        return (
          <a key={tab.id} href={href(path, {}, params)} aria-current={tab.id === now ? "true" : undefined}>
            {tab.title}
            {tab.count !== undefined && <span class="tab-count">{tab.count}</span>}
          </a>
        );
      })}
    </nav>
  );
}
