// Every view of the page. The order is that of the navigation.
import type { ComponentType } from "preact";
import { Locks } from "./Locks";

export interface ViewProps {
  /** The names of the path: { id } of "/runs/:id". */
  names: Record<string, string>;
}

export interface View {
  path: string;
  title: string;
  /** The heading in the navigation; a view without a group is reached from others. */
  group?: Group;
  /** The letter that goes there after g. */
  key?: string;
  /** What the key must have; see can(). Without it, the view is not offered. */
  permission: string;
  /** The permission named after the view's route, which is enough by itself. */
  route?: string;
  component: ComponentType<ViewProps>;
}

export const GROUPS = ["Now", "Work", "Apps", "Store", "Administration"] as const;
export type Group = (typeof GROUPS)[number];

export const VIEWS: View[] = [
  { path: "/locks", title: "Locks", group: "Work", key: "l", permission: "read", component: Locks },
];
