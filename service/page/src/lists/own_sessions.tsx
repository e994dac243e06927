// What a key that is bound to sessions sees in the place of the dashboard, whose figures are of the whole tenant.
import { Empty } from "../parts/states.tsx";
import { Name } from "../parts/text.tsx";
import { link } from "../route.ts";
import { SessionPage } from "./session.tsx";

export function OwnSessions({ session, isPrefix }: { session: string; isPrefix: boolean }) {
  if (isPrefix) return <WhichSession prefix={session} isPage />;
  return (
    <>
      <p class="notice">This key is for one session. The figures of the whole tenant are not for it; these are its captures.</p>
      <SessionPage session={session} />
    </>
  );
}

/** Ask for a session: a key of several may list the captures of one of them at a time. */
export function WhichSession({ prefix, isPage = false }: { prefix: string; isPage?: boolean }) {
  const submitted = (event: preact.TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    location.hash = link(["sessions", String(new FormData(event.currentTarget).get("session"))]);
  };
  return (
    <Empty isPage={isPage} title="Your sessions">
      <p>This key is for the sessions whose names begin with <code><Name text={prefix} /></code>. The figures of the whole tenant are not for it.</p>
      <form class="tools" onSubmit={submitted}>
        <label class="small">
          Session <input name="session" defaultValue={prefix} required spellcheck={false} autocomplete="off" />
        </label>
        <button type="submit" class="small">Show its captures</button>
      </form>
    </Empty>
  );
}
