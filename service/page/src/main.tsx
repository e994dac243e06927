// The page: who is signed in, and which view the address names.
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { CapturePage } from "./capture/page.tsx";
import { Dashboard } from "./dashboard/dashboard.tsx";
import { useKeys } from "./keys.ts";
import { CapturesPage } from "./lists/captures.tsx";
import { OwnSessions } from "./lists/own_sessions.tsx";
import { SessionPage } from "./lists/session.tsx";
import { SessionsPage } from "./lists/sessions.tsx";
import { TerminalsPage } from "./lists/terminals.tsx";
import { Empty, Trouble, Waiting } from "./parts/states.tsx";
import { link, useRoute } from "./route.ts";
import { signIn, whenSignedOut, whoAmI } from "./service/api.ts";
import type { SignedIn } from "./service/wire.ts";
import { Boundary } from "./shell/boundary.tsx";
import { Help } from "./shell/help.tsx";
import { SignInPage } from "./shell/sign_in.tsx";
import { TopBar } from "./shell/top_bar.tsx";
import { themes } from "./theme.ts";

const CODE = /^#code=([\w.-]+)(?:&to=(\/.*))?$/;

function App() {
  const [who, setWho] = useState<SignedIn | null>();
  const [hasEnded, setEnded] = useState(false);
  const [problem, setProblem] = useState<Error>();
  const start = () => {
    setProblem(undefined);
    begin().then(setWho, setProblem);
  };
  useEffect(() => {
    whenSignedOut(() => {
      setEnded(true);
      setWho(null);
    });
    start();
    // A link that is opened in a tab of this page changes nothing but what is behind `#`.
    const restart = () => CODE.test(location.hash) && start();
    addEventListener("hashchange", restart);
    return () => removeEventListener("hashchange", restart);
  }, []);
  if (problem) return <main><Trouble problem={problem} onRetry={start} /></main>;
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

function Page({ who, onLeft }: { who: SignedIn; onLeft(): void }) {
  const { path } = useRoute();
  const [isHelpOpen, setHelpOpen] = useState(false);
  useKeys({
    "?": () => setHelpOpen(true),
    d: () => (location.hash = link([])),
    c: () => (location.hash = link(["captures"])),
    s: () => (location.hash = link(["sessions"])),
    T: () => (location.hash = link(["terminals"])),
  });
  useEffect(() => {
    document.title = [...path.slice(0, 2), "Overspill"].join(" · ");
  }, [path.join("/")]);
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => (event.preventDefault(), document.getElementById("main")?.focus())}>To the content</a>
      <TopBar view={path[0]} who={who} onHelp={() => setHelpOpen(true)} onLeft={onLeft} />
      <main id="main" tabIndex={-1}>
        <Boundary key={path.join("/")}><View path={path} who={who} /></Boundary>
      </main>
      {isHelpOpen && <Help onClose={() => setHelpOpen(false)} />}
    </>
  );
}

function View({ path, who }: { path: string[]; who: SignedIn }) {
  const [view, name] = path;
  if (view === undefined) return who.session === null ? <Dashboard who={who} /> : <OwnSessions session={who.session} isPrefix={who.is_prefix} />;
  if (view === "captures" && name) return <CapturePage key={name} reference={name} who={who} />;
  if (view === "captures") return <CapturesPage who={who} />;
  if (view === "terminals") return <TerminalsPage who={who} />;
  if (view === "sessions" && name) return <SessionPage key={name} session={name} />;
  if (view === "sessions") return <SessionsPage />;
  return (
    <Empty isPage title="There is no such view">
      <p><a href={link([])}>The dashboard</a>, the <a href={link(["captures"])}>captures</a> and the <a href={link(["sessions"])}>sessions</a> are good places to begin.</p>
    </Empty>
  );
}

themes.apply();
render(<App />, document.getElementById("app")!);
