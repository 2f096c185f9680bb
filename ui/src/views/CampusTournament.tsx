// One tournament: its state and the next ones, enrolling, finalizing.
import { useState } from "preact/hooks";
import { send } from "../api";
import {
  Badge,
  Bar,
  confirm,
  Copyable,
  ErrorBox,
  Facts,
  Head,
  Json,
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
import { CHANGES, type Finalized, NEXT_STATES, type Tournament, words } from "./campus_types";
import { campusTone, UserForm } from "./CampusParts";

const pathOf = (t: Tournament, call: string): string =>
  `/campus/tournaments/${encodeURIComponent(t.id)}/${call}`;

function askTransition(t: Tournament, state: string): void {
  confirm({
    title: `${t.code}: ${(CHANGES[state] ?? state).toLowerCase()}?`,
    text:
      state === "CANCELLED"
        ? "Every enrollment and booking is refunded in full. It cannot be undone."
        : `The state is ${words(t.state)} now.`,
    label: state === "CANCELLED" ? "Cancel tournament" : (CHANGES[state] ?? state),
    danger: state === "CANCELLED",
    run: async () => {
      await send("POST", pathOf(t, "transition"), { state });
      return `${t.code} is now ${words(state)}`;
    },
  });
}

function askFinalize(t: Tournament, onDone: (done: Finalized) => void): void {
  confirm({
    title: `Finalize ${t.code}?`,
    text: "The players are ranked, and each is paid once; repeating it changes nothing.",
    label: "Finalize",
    run: async () => {
      const done = await send<Finalized>("POST", pathOf(t, "finalize"));
      onDone(done);
      return done.repeated ? `${t.code} was finalized before` : `${number(done.paid)} players paid`;
    },
  });
}

function Actions({
  tournament: t,
  onDone,
}: {
  tournament: Tournament;
  onDone: (done: Finalized) => void;
}) {
  if (!can("operator")) return null;
  return (
    <>
      {(NEXT_STATES[t.state] ?? []).map((state) => (
        <button
          key={state}
          type="button"
          class={state === "CANCELLED" ? "danger-text" : ""}
          onClick={() => askTransition(t, state)}
        >
          {CHANGES[state] ?? state}…
        </button>
      ))}
      {["IN_PROGRESS", "COMPLETED", "REWARDS_DISTRIBUTED"].includes(t.state) && (
        <button type="button" class="primary" onClick={() => askFinalize(t, onDone)}>
          Finalize…
        </button>
      )}
    </>
  );
}

function Results({ done }: { done: Finalized }) {
  return (
    <Panel title={done.repeated ? "Results: it was finalized before" : "Results"}>
      <Table
        label="Results"
        rows={done.items}
        rowKey={(r) => r.user}
        columns={[
          { title: "Place", cell: (r) => r.placement, align: "right" },
          {
            title: "Player",
            cell: (r) => <a href={href("/campus/users/:id", { id: r.user })}>{r.user}</a>,
            grow: true,
          },
          { title: "XP", cell: (r) => number(r.xp), align: "right" },
          { title: "Credits", cell: (r) => number(r.credits), align: "right" },
        ]}
      />
    </Panel>
  );
}

function TournamentFacts({ tournament: t }: { tournament: Tournament }) {
  return (
    <Panel title="Tournament">
      <Facts
        of={[
          ["State", <Badge state={t.state} tone={campusTone(t.state)} />],
          [
            "Players",
            <Bar
              share={t.enrolled / t.max_players}
              text={`${t.enrolled}/${t.max_players}`}
              label="Places taken"
            />,
          ],
          ["Name", t.name],
          ["Campus", t.campus ?? "none yet; needed before enrollment opens"],
          ["Cost", `${number(t.cost)} credits`],
          ["Specialization", t.specialization],
          ["Completed", t.completed_at && <Time at={t.completed_at} />],
          ["Created", <Time at={t.created_at} />],
          ["Id", <Copyable value={t.id} label="id" />],
        ]}
      />
      {t.reward_config !== null && (
        <div class="after-facts">
          <h3>Rewards by place</h3>
          <Json value={t.reward_config} label="rewards by place" />
        </div>
      )}
    </Panel>
  );
}

export function CampusTournament({ names }: ViewProps) {
  const id = names["id"] ?? "";
  const {
    data: t,
    error,
    loading,
  } = useLive<Tournament>(`/campus/tournaments/${encodeURIComponent(id)}`);
  const [done, setDone] = useState<Finalized>();
  return (
    <>
      <Head title={t?.code ?? id} above={{ title: "Campus", href: href("/campus") }}>
        {t && <Actions tournament={t} onDone={setDone} />}
      </Head>
      <ErrorBox error={error} />
      {loading && <Loading />}
      {t && (
        <div class="columns">
          <TournamentFacts tournament={t} />
          {can("write", "campus:tournament_enroll") && (
            <Panel title="Enrollment">
              <UserForm
                actions={[
                  {
                    title: "Enroll",
                    path: pathOf(t, "enroll"),
                    done: "Enrolled",
                  },
                  {
                    title: "Withdraw",
                    path: pathOf(t, "unenroll"),
                    done: "Withdrawn; half of the cost was refunded",
                  },
                ]}
              />
            </Panel>
          )}
        </div>
      )}
      {done && <Results done={done} />}
    </>
  );
}
