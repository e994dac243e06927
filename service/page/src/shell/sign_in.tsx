// Where a key is asked for.
import { useState } from "preact/hooks";
import { Trouble } from "../parts/states.tsx";
import { signIn } from "../service/api.ts";
import type { SignedIn } from "../service/wire.ts";
import { Logo } from "./top_bar.tsx";

export function SignInPage({ hasEnded, onDone }: { hasEnded: boolean; onDone(who: SignedIn): void }) {
  const [problem, setProblem] = useState<Error>();
  const submitted = (event: preact.TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const key = String(new FormData(event.currentTarget).get("key") ?? "").trim();
    signIn({ key }).then(onDone, setProblem);
  };
  return (
    <main class="sign-in">
      <h1><Logo /> Overspill</h1>
      <p class="quiet">What was too long for a conversation, kept to be read.</p>
      <form onSubmit={submitted}>
        <label>
          Key
          <input name="key" type="password" autocomplete="off" autofocus required spellcheck={false} placeholder="ovs_…" />
        </label>
        <button type="submit" class="primary">Sign in</button>
      </form>
      {problem && <Trouble problem={problem} />}
      {hasEnded && !problem && (
        <p class="notice" role="status">
          This session has ended: its time is over, its key was revoked, or another tab has signed in with another key.
          To go on with that one, reload the page.
        </p>
      )}
      <dl>
        <dt>On the machine of the service</dt>
        <dd><code>overspill open</code> signs you in by itself.</dd>
        <dt>Elsewhere</dt>
        <dd>An operator makes a key: <code>overspill-service keys create --tenant NAME --scopes read</code></dd>
      </dl>
    </main>
  );
}
