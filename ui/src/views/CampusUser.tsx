// One user of the campus: balances, badges, licenses with their skills.
import { send } from "../api";
import {
  Badge,
  confirm,
  Copyable,
  Empty,
  ErrorBox,
  Facts,
  Head,
  Loading,
  Panel,
  Table,
  Time,
} from "../components";
import { number } from "../format";
import { useLive } from "../live";
import { href } from "../router";
import { can } from "../session";
import type { ViewProps } from ".";
import { type Badges, type License, type Skill, type User, words } from "./campus_types";

const level = (s: Skill): string => (typeof s === "number" ? s : s.current_level).toFixed(1);
const signed = (n: number): string => (n > 0 ? `+${n.toFixed(1)}` : n.toFixed(1));

function askAssess(license: License, skill: string, now: Skill): void {
  const baseline = typeof now === "number" ? now : now.baseline;
  confirm({
    title: `Assess ${words(skill)}`,
    text: "Sets the baseline; the level is computed again from it and all tournaments.",
    label: "Assess",
    fields: (
      <label class="field">
        <span>Baseline, 40 to 99</span>
        <input
          type="number"
          name="value"
          min={40}
          max={99}
          step={0.1}
          required
          defaultValue={baseline.toFixed(1)}
        />
      </label>
    ),
    run: async (_, form) => {
      await send("POST", `/campus/licenses/${encodeURIComponent(license.id)}/assess`, {
        skill,
        value: Number(form.get("value")),
      });
      return `Assessed ${words(skill)}`;
    },
  });
}

function LicensePanel({ license }: { license: License }) {
  const skills = Object.entries(license.football_skills);
  const assesses = can("write", "campus:license_assess");
  const of = (s: Skill) => (typeof s === "number" ? undefined : s);
  return (
    <Panel
      title={`License ${license.specialization}`}
      tools={
        <Badge
          state={license.is_active ? "active" : "inactive"}
          tone={license.is_active ? "ok" : "idle"}
        />
      }
    >
      <Table
        label="Skills"
        rows={skills}
        rowKey={([name]) => name}
        columns={[
          { title: "Skill", cell: ([name]) => words(name), grow: true },
          { title: "Level", cell: ([, s]) => level(s), align: "right" },
          {
            title: "Baseline",
            cell: ([, s]) => of(s)?.baseline.toFixed(1) ?? <span class="muted">old format</span>,
            align: "right",
            wide: true,
          },
          {
            title: "Last tournament",
            cell: ([, s]) => (of(s) ? signed(of(s)!.tournament_delta) : ""),
            align: "right",
            wide: true,
          },
          {
            title: "All tournaments",
            cell: ([, s]) => (of(s) ? signed(of(s)!.total_delta) : ""),
            align: "right",
            wide: true,
          },
          {
            title: "Tournaments",
            cell: ([, s]) => of(s)?.tournament_count,
            align: "right",
            wide: true,
          },
          ...(assesses
            ? [
                {
                  title: "Action",
                  cell: ([name, s]: [string, Skill]) => (
                    <button
                      type="button"
                      aria-label={`Assess ${words(name)}`}
                      onClick={() => askAssess(license, name, s)}
                    >
                      Assess…
                    </button>
                  ),
                },
              ]
            : []),
        ]}
      />
    </Panel>
  );
}

function BadgeList({ badges }: { badges: Badges }) {
  return (
    <Panel title="Badges">
      {badges.items.length === 0 ? (
        <Empty title="No badges yet">They are earned when a tournament is finalized.</Empty>
      ) : (
        <Table
          label="Badges"
          rows={badges.items}
          rowKey={(b) => `${b.tournament} ${b.type}`}
          columns={[
            { title: "Badge", cell: (b) => words(b.type), grow: true },
            {
              title: "Tournament",
              cell: (b) => (
                <a href={href("/campus/tournaments/:id", { id: b.tournament })}>{b.tournament}</a>
              ),
            },
            { title: "Earned", cell: (b) => <Time at={b.created_at} /> },
          ]}
        />
      )}
    </Panel>
  );
}

export function CampusUser({ names }: ViewProps) {
  const id = names["id"] ?? "";
  const path = `/campus/users/${encodeURIComponent(id)}`;
  const { data: user, error, loading } = useLive<User>(path);
  const exists = { when: user !== undefined };
  const badges = useLive<Badges>(`${path}/badges`, {}, exists).data;
  const licenses = useLive<{ items: License[] }>(`${path}/skills`, {}, exists).data;
  return (
    <>
      <Head title={user?.email ?? id} above={{ title: "Campus", href: href("/campus") }} />
      <ErrorBox error={error} />
      {loading && <Loading />}
      {user && (
        <div class="columns">
          <Panel title="User">
            <Facts
              of={[
                ["Credits", number(user.credit_balance)],
                ["XP", number(user.xp_balance)],
                ["Active", user.is_active ? "yes" : "no"],
                ["Created", <Time at={user.created_at} />],
                ["Id", <Copyable value={user.id} label="id" />],
              ]}
            />
          </Panel>
          {badges && <BadgeList badges={badges} />}
        </div>
      )}
      {licenses?.items.length === 0 && (
        <Empty title="No license">Without one the user cannot take part in tournaments.</Empty>
      )}
      {licenses?.items.map((l) => (
        <LicensePanel key={l.id} license={l} />
      ))}
    </>
  );
}
