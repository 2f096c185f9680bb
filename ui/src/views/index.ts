// Every view of the page. The order is that of the navigation.
import type { ComponentType } from "preact";
import { can, isDemo } from "../session";
import { Audit } from "./Audit";
import { Cache } from "./Cache";
import { Campus } from "./Campus";
import { CampusBooking, CampusSession } from "./CampusBooking";
import { CampusTournament } from "./CampusTournament";
import { CampusUser } from "./CampusUser";
import { Demo } from "./Demo";
import { Ingestion } from "./Ingestion";
import { IngestionEvent } from "./IngestionEvent";
import { IngestionRun } from "./IngestionRun";
import { IngestionRace } from "./IngestionRace";
import { Invariant } from "./Invariant";
import { Invariants } from "./Invariants";
import { Job } from "./Job";
import { Lock } from "./Lock";
import { LockOrder } from "./LockOrder";
import { Keys } from "./Keys";
import { Locks } from "./Locks";
import { Overview } from "./Overview";
import { Pipeline } from "./Pipeline";
import { Pipelines } from "./Pipelines";
import { Queue } from "./Queue";
import { Queues } from "./Queues";
import { Run } from "./Run";
import { Runs } from "./Runs";
import { Settings } from "./Settings";
import { Usage } from "./Usage";
import "./views.css";

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
  /** The x-key-prefix of its route; see can(). */
  names?: string;
  /** Only the server of `interlock demo` has it. */
  demo?: true;
  component: ComponentType<ViewProps>;
}

export const GROUPS = ["Now", "Work", "Apps", "Store", "Administration"] as const;
export type Group = (typeof GROUPS)[number];

export const VIEWS: View[] = [
  { path: "/", title: "Overview", group: "Now", key: "o", permission: "read", route: "overview:get", component: Overview },
  { path: "/demo", title: "Try it", group: "Now", key: "y", permission: "read", route: "demo:list", demo: true, component: Demo },
  { path: "/locks", title: "Locks", group: "Work", key: "l", permission: "read", route: "lock:list", component: Locks },
  { path: "/locks/:key", title: "Lock", permission: "read", route: "lock:why", component: Lock },
  { path: "/order", title: "Lock order", group: "Work", key: "d", permission: "read", route: "lock:order", component: LockOrder },
  { path: "/runs", title: "Runs", group: "Work", key: "r", permission: "read", route: "run:list", component: Runs },
  { path: "/runs/:id", title: "Run", permission: "read", route: "run:get", component: Run },
  { path: "/pipelines", title: "Pipelines", group: "Work", key: "p", permission: "read", route: "pipeline:list", component: Pipelines },
  { path: "/pipelines/:id", title: "Pipeline", permission: "read", route: "pipeline:get", component: Pipeline },
  { path: "/queues", title: "Queues", group: "Work", key: "q", permission: "read", route: "queue:list", component: Queues },
  { path: "/queues/:queue", title: "Queue", permission: "read", route: "queue:get", component: Queue },
  { path: "/jobs/:id", title: "Job", permission: "read", route: "job:get", component: Job },
  { path: "/ingestion", title: "Ingestion", group: "Apps", key: "e", permission: "read", route: "ingest:events_list", names: "", component: Ingestion },
  { path: "/ingestion/events/:id", title: "Event", permission: "read", route: "ingest:event_get", names: "", component: IngestionEvent },
  { path: "/ingestion/races/:id", title: "Race", permission: "read", route: "ingest:race_get", names: "", component: IngestionRace },
  { path: "/ingestion/jobs/:id", title: "Ingestion", permission: "read", route: "ingest:status", names: "", component: IngestionRun },
  { path: "/campus", title: "Campus", group: "Apps", key: "c", permission: "read", route: "campus:tournament_list", names: "", component: Campus },
  { path: "/campus/tournaments/:id", title: "Tournament", permission: "read", route: "campus:tournament_get", names: "", component: CampusTournament },
  { path: "/campus/users/:id", title: "User", permission: "read", route: "campus:user_get", names: "", component: CampusUser },
  { path: "/campus/sessions/:id", title: "Session", permission: "read", route: "campus:session_get", names: "", component: CampusSession },
  { path: "/campus/bookings/:id", title: "Booking", permission: "read", route: "campus:booking_get", names: "", component: CampusBooking },
  { path: "/usage", title: "Usage", group: "Apps", key: "u", permission: "admin:usage", names: "usage_day:", component: Usage },
  { path: "/invariants", title: "Invariants", group: "Apps", key: "i", permission: "read", route: "check:list", component: Invariants },
  { path: "/invariants/:name", title: "Invariant", permission: "read", route: "check:get", component: Invariant },
  { path: "/cache", title: "Cache & idempotency", group: "Store", key: "s", permission: "read", route: "cache:get", component: Cache },
  { path: "/audit", title: "Audit", group: "Administration", key: "a", permission: "operator", route: "admin:audit", component: Audit },
  { path: "/keys", title: "Keys & tenants", group: "Administration", key: "k", permission: "admin", route: "admin:key_list", component: Keys },
  { path: "/settings", title: "Settings", group: "Administration", key: "t", permission: "admin", route: "admin:config", component: Settings },
];

/** Whether the view is there for the key that is signed in. */
export const isOffered = (v: View): boolean => can(v.permission, v.route, v.names) && (v.demo !== true || isDemo());
