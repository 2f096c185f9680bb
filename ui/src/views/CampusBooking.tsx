// One session with its places, and one booking: confirmed, waitlisted or cancelled.
import { send } from "../api";
import { act } from "../act";
import {
  Badge,
  Bar,
  confirm,
  Copyable,
  ErrorBox,
  Facts,
  Head,
  Loading,
  Panel,
  Time,
} from "../components";
import { number } from "../format";
import { useLive } from "../live";
import { href } from "../router";
import { can } from "../session";
import type { ViewProps } from ".";
import type { Booking, CampusSession as Session } from "./campus_types";
import { campusTone, UserForm } from "./CampusParts";

export function CampusSession({ names }: ViewProps) {
  const id = names["id"] ?? "";
  const path = `/campus/sessions/${encodeURIComponent(id)}`;
  const { data: s, error, loading } = useLive<Session>(path);
  return (
    <>
      <Head title={s?.name ?? id} above={{ title: "Campus", href: href("/campus") }} />
      <ErrorBox error={error} />
      {loading && <Loading />}
      {s && (
        <div class="columns">
          <Panel title="Session">
            <Facts
              of={[
                [
                  "Places taken",
                  <Bar
                    share={(s.capacity - s.available_spots) / s.capacity}
                    text={`${s.capacity - s.available_spots}/${s.capacity}`}
                    label="Places taken"
                  />,
                ],
                ["Starts", <Time at={s.date_start} />],
                ["Ends", <Time at={s.date_end} />],
                ["Price", `${number(s.price)} credits`],
                [
                  "Tournament",
                  s.tournament && (
                    <a
                      href={href("/campus/tournaments/:id", {
                        id: s.tournament,
                      })}
                    >
                      {s.tournament}
                    </a>
                  ),
                ],
                ["Id", <Copyable value={s.id} label="id" />],
              ]}
            />
          </Panel>
          {can("write", "campus:session_book") && (
            <Panel title="Booking">
              <UserForm
                actions={[
                  {
                    title: "Book",
                    path: `${path}/book`,
                    done: "Booked, or waitlisted if the session is full",
                  },
                ]}
              />
            </Panel>
          )}
        </div>
      )}
    </>
  );
}

function BookingActions({ booking: b, path }: { booking: Booking; path: string }) {
  if (b.status === "CANCELLED") return null;
  const operates = can("operator");
  const askCancel = () =>
    confirm({
      title: "Cancel this booking?",
      text: "It is refunded, and the first in the waitlist gets the place.",
      label: "Cancel booking",
      danger: true,
      run: async () => {
        await send("POST", `${path}/cancel`);
        return "Booking cancelled";
      },
    });
  const attend = (status: string) =>
    void act("POST", `${path}/attendance`, { status }, `Recorded: ${status.toLowerCase()}`);
  return (
    <>
      {operates && b.status === "WAITLISTED" && (
        <button
          type="button"
          class="primary"
          onClick={() => void act("POST", `${path}/confirm`, undefined, "Booking confirmed")}
        >
          Confirm
        </button>
      )}
      {operates &&
        b.status === "CONFIRMED" &&
        ["PRESENT", "LATE", "ABSENT"].map((status) => (
          <button key={status} type="button" onClick={() => attend(status)}>
            {status.charAt(0) + status.slice(1).toLowerCase()}
          </button>
        ))}
      {can("write", "campus:booking_cancel") && (
        <button type="button" class="danger-text" onClick={askCancel}>
          Cancel…
        </button>
      )}
    </>
  );
}

export function CampusBooking({ names }: ViewProps) {
  const id = names["id"] ?? "";
  const path = `/campus/bookings/${encodeURIComponent(id)}`;
  const { data: b, error, loading } = useLive<Booking>(path);
  return (
    <>
      <Head title="Booking" above={{ title: "Campus", href: href("/campus") }}>
        {b && <BookingActions booking={b} path={path} />}
      </Head>
      <ErrorBox error={error} />
      {loading && <Loading />}
      {b && (
        <Panel title="Booking">
          <Facts
            of={[
              ["State", <Badge state={b.status} tone={campusTone(b.status)} />],
              ["Place in the waitlist", b.waitlist_position],
              ["User", <a href={href("/campus/users/:id", { id: b.user })}>{b.user}</a>],
              [
                "Session",
                <a href={href("/campus/sessions/:id", { id: b.session })}>{b.session}</a>,
              ],
              ["Price", `${number(b.price)} credits`],
              ["Created", <Time at={b.created_at} />],
              ["Id", <Copyable value={b.id} label="id" />],
            ]}
          />
        </Panel>
      )}
    </>
  );
}
