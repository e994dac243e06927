// The bar at the top: the views, and who is signed in.
import { useState } from "preact/hooks";
import { Choice } from "../parts/boxes.tsx";
import { Name, Time } from "../parts/text.tsx";
import { link } from "../route.ts";
import { signOut } from "../service/api.ts";
import type { SignedIn } from "../service/wire.ts";
import { themes } from "../theme.ts";

interface TopBarProps {
  view: string | undefined;
  who: SignedIn;
  onHelp(): void;
  onLeft(): void;
}

export function TopBar({ view, who, onHelp, onLeft }: TopBarProps) {
  return (
    <header class="top">
      <a class="brand" href={link([])}><Logo /> <strong>Overspill</strong></a>
      <nav aria-label="Views">
        <a href={link([])} aria-current={view === undefined ? "page" : undefined}>{firstOf(who)}</a>
        <a href={link(["captures"])} aria-current={view === "captures" ? "page" : undefined}>Captures</a>
        {!who.is_prefix && <a href={link(["terminals"])} aria-current={view === "terminals" ? "page" : undefined}>Terminals</a>}
        {who.session === null && <a href={link(["sessions"])} aria-current={view === "sessions" ? "page" : undefined}>Sessions</a>}
      </nav>
      <span class="who">
        <button type="button" class="small quiet" onClick={onHelp} aria-label="Keys" title="Keys (?)">?</button>
        <button type="button" class="small account" popovertarget="account" title="Account and theme"><Name text={who.tenant} /> <span aria-hidden="true">▾</span></button>
      </span>
      <Account who={who} onLeft={onLeft} />
    </header>
  );
}

/** What the first view is: figures of the tenant, or what the key is bound to. */
function firstOf({ session, is_prefix: isPrefix }: SignedIn): string {
  if (session === null) return "Dashboard";
  return isPrefix ? "Your sessions" : "Your session";
}

function Account({ who, onLeft }: { who: SignedIn; onLeft(): void }) {
  return (
    <div id="account" popover="auto" class="menu" role="region" aria-label="Account">
      <dl>
        <dt>Tenant</dt>
        <dd><Name text={who.tenant} /></dd>
        <dt>Key</dt>
        <dd>{who.key ? <code>{who.key}</code> : "none: open to all"}</dd>
        <dt>May</dt>
        <dd>{who.scopes.join(", ")}</dd>
        {who.until && <><dt>Session ends</dt><dd><Time at={who.until} /></dd></>}
      </dl>
      <ThemeChoice />
      {who.until && <button type="button" onClick={() => void signOut().then(onLeft)}>Sign out</button>}
    </div>
  );
}

function ThemeChoice() {
  const [theme, setTheme] = useState(themes.chosen());
  const choose = (chosen: string) => {
    themes.choose(chosen);
    setTheme(chosen);
  };
  return <Choice label="Theme" options={[["", "System"], ["light", "Light"], ["dark", "Dark"]]} chosen={theme} onChoose={choose} />;
}

export function Logo() {
  return (
    <svg class="logo" viewBox="0 0 16 16" width="20" height="20" aria-hidden="true">
      <rect width="16" height="16" rx="3" class="logo-ground" />
      <path d="M3 5h10M3 8h10" class="logo-line" />
      <path d="M3 11h4m1.5 0h1m1.5 0h2" class="logo-dots" />
    </svg>
  );
}
