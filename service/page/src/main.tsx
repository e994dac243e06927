// The page: who is signed in, which view the address names, keys, theme.
import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { signIn, type SignedIn, signOut, whenSignedOut, whoAmI } from "./api.ts";
import { HELP, useKeys } from "./keys.ts";
import { CapturePage } from "./pages/capture.tsx";
import { CapturesPage } from "./pages/captures.tsx";
import { Dashboard } from "./pages/dashboard.tsx";
import { OwnSessions } from "./pages/own_sessions.tsx";
import { SessionPage } from "./pages/session.tsx";
import { SessionsPage } from "./pages/sessions.tsx";
import { Empty, Name, Trouble, Waiting } from "./parts/small.tsx";
import { link, useRoute } from "./route.ts";
import { themes } from "./theme.ts";

const CODE = /^#code=([\w.-]+)(?:&to=(\/.*))?$/;

function App() {
  const [who, setWho] = useState<SignedIn | null>();
  const [hasEnded, setEnded] = useState(false);
  const [problem, setProblem] = useState<Error>();
  useEffect(() => {
    whenSignedOut(() => {
      setEnded(true);
      setWho(null);
    });
    begin().then(setWho, setProblem);
  }, []);
  if (problem) return <main><Trouble problem={problem} /></main>;
  if (who === undefined) return <main><Waiting /></main>;
  return who === null ? <SignInPage hasEnded={hasEnded} onDone={setWho} /> : <Page who={who} onLeft={() => setWho(null)} />;
}

/** Sign in by the code of a link, if there is one, and take it out of the address. */
async function begin(): Promise<SignedIn | null> {
  const [, code, view = "/"] = CODE.exec(location.hash) ?? [];
  if (!code) return whoAmI();
  history.replaceState(null, "", `#${view}`);
  dispatchEvent(new HashChangeEvent("hashchange"));
  try {
    return await signIn({ code });
  } catch (error) {
    return (await whoAmI()) ?? Promise.reject(error as Error);  // the link was used before, by this browser
  }
}

function SignInPage({ hasEnded, onDone }: { hasEnded: boolean; onDone(who: SignedIn): void }) {
  const [problem, setProblem] = useState<Error>();
  return (
    <main class="sign-in">
      <h1>Overspill</h1>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const key = String(new FormData(event.currentTarget).get("key") ?? "").trim();
          signIn({ key }).then(onDone, setProblem);
        }}
      >
        <label>
          Key
          <input name="key" type="password" autocomplete="off" autofocus required spellcheck={false} placeholder="ovs_…" />
        </label>
        <button type="submit">Sign in</button>
      </form>
      {problem && <Trouble problem={problem} />}
      {hasEnded && !problem && (
        <p role="status">
          This session has ended: its time is over, its key was revoked, or another tab has signed in with another key.
          To go on with that one, reload the page.
        </p>
      )}
      <p class="quiet">
        On the machine of the service, <code>overspill open</code> signs you in by itself. Elsewhere,{" "}
        <code>overspill-service keys create --tenant NAME --scopes read</code> makes a key.
      </p>
    </main>
  );
}

function Page({ who, onLeft }: { who: SignedIn; onLeft(): void }) {
  const { path } = useRoute();
  const [isHelpOpen, setHelpOpen] = useState(false);
  useKeys({
    "?": () => setHelpOpen(true),
    d: () => (location.hash = link([])),
    c: () => (location.hash = link(["captures"])),
    s: () => (location.hash = link(["sessions"])),
  });
  useEffect(() => {
    document.title = [path[1] ?? path[0] ?? "Dashboard", "Overspill"].join(" · ");
  }, [path.join("/")]);
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => (event.preventDefault(), document.getElementById("main")?.focus())}>Skip to the content</a>
      <header class="top">
        <strong>Overspill</strong>
        <nav aria-label="Views">
          <a href={link([])} aria-current={path.length === 0 ? "page" : undefined}>Dashboard</a>
          <a href={link(["captures"])} aria-current={path[0] === "captures" ? "page" : undefined}>Captures</a>
          {who.session === null && <a href={link(["sessions"])} aria-current={path[0] === "sessions" ? "page" : undefined}>Sessions</a>}
        </nav>
        <span class="who">
          <span class="quiet small">{who.key ? <>key <Name text={who.key} /></> : "open to all"}</span>
          <ThemeChoice />
          <button type="button" class="small" onClick={() => setHelpOpen(true)} aria-label="Keys">?</button>
          {who.until && <button type="button" class="small" onClick={() => void signOut().then(onLeft)}>Sign out</button>}
        </span>
      </header>
      <main id="main" tabIndex={-1}>
        <View path={path} who={who} />
      </main>
      {isHelpOpen && <Help onClose={() => setHelpOpen(false)} />}
    </>
  );
}

function View({ path, who }: { path: string[]; who: SignedIn }) {
  const [view, name] = path;
  if (view === undefined) return who.session === null ? <Dashboard who={who} /> : <OwnSessions session={who.session} isPrefix={who.is_prefix} />;
  if (view === "captures" && name) return <CapturePage key={name} reference={name} who={who} />;
  if (view === "captures") return <CapturesPage />;
  if (view === "sessions" && name) return <SessionPage session={name} />;
  if (view === "sessions") return <SessionsPage />;
  return (
    <Empty isPage title="There is no such view">
      <p><a href={link([])}>The dashboard</a>, the <a href={link(["captures"])}>captures</a> and the <a href={link(["sessions"])}>sessions</a> are good places to begin.</p>
    </Empty>
  );
}

function ThemeChoice() {
  const [theme, setTheme] = useState(themes.chosen());
  return (
    <label class="small">
      <span class="unseen">Theme</span>
      <select
        value={theme}
        onChange={(event) => {
          themes.choose(event.currentTarget.value);
          setTheme(event.currentTarget.value);
        }}
      >
        <option value="">system</option>
        <option value="light">light</option>
        <option value="dark">dark</option>
      </select>
    </label>
  );
}

function Help({ onClose }: { onClose(): void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} onClose={onClose} aria-labelledby="help">
      <h2 id="help">Keys</h2>
      <dl class="keys">
        {HELP.map(([key, meaning]) => (
          <div>
            <dt><kbd>{key}</kbd></dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
      <button type="button" onClick={() => dialog.current?.close()}>Close</button>
    </dialog>
  );
}

themes.apply();
render(<App />, document.getElementById("app")!);
