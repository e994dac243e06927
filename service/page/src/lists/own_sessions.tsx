// What a key that is bound to sessions sees in the place of the dashboard, whose figures are of the whole tenant.
import { Name } from "../parts/text.tsx";
import { link } from "../route.ts";
import { SessionPage } from "./session.tsx";

export function OwnSessions({ session, isPrefix }: { session: string; isPrefix: boolean }) {
  if (!isPrefix)
    return (
      <>
        <p class="quiet">This key is for one session. The figures of the whole tenant are not for it; these are its captures.</p>
        <SessionPage session={session} />
      </>
    );
  return (
    <section>
      <h1>Your sessions</h1>
      <p>This key is for the sessions whose names begin with <Name text={session} />. The figures of the whole tenant are not for it.</p>
      <form
        class="tools"
        onSubmit={(event) => {
          event.preventDefault();
          location.hash = link(["sessions", String(new FormData(event.currentTarget).get("session"))]);
        }}
      >
        <label class="small">
          Session <input name="session" defaultValue={session} required spellcheck={false} />
        </label>
        <button type="submit" class="small">Show its captures</button>
      </form>
    </section>
  );
}
