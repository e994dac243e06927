// What the list of captures is narrowed to. All of it is in the address.
import { RANGES, fixedSpan } from "../ranges.ts";
import { minute } from "../format.ts";
import { link, setQuery } from "../route.ts";

const FIELDS = [["tool", "Tool"], ["session", "Session"], ["call", "Call"]] as const;
const STATES = ["", "complete", "partial", "live"];
const NAMES = ["tool", "session", "call", "state", "range", "since", "until", "cursor"];

/** The field that the key `/` goes to. */
export const FIRST_FILTER = "first-filter";
const TOOLS = "known-tools";

export function isFiltered(query: URLSearchParams): boolean {
  return NAMES.some((name) => query.has(name));
}

export function Filters({ query, tools }: { query: URLSearchParams; tools: string[] }) {
  const apply = (form: HTMLFormElement) => {
    const given = Object.fromEntries(new FormData(form)) as Record<string, string>;
    setQuery({ ...given, cursor: null, largest: null });
  };
  const submitted = (event: preact.TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    apply(event.currentTarget);
  };
  const span = fixedSpan(query);
  return (
    <form class="filters" role="search" aria-label="Filters" onSubmit={submitted}>
      {FIELDS.map(([name, label], at) => (
        <label key={name} class="small">
          {label}
          <input name={name} id={at === 0 ? FIRST_FILTER : undefined} list={name === "tool" ? TOOLS : undefined} defaultValue={query.get(name) ?? ""} placeholder="any" spellcheck={false} autocomplete="off" />
        </label>
      ))}
      <Select name="state" label="State" options={STATES.map((state) => [state, state || "any"])} chosen={query.get("state")} onChoose={apply} />
      {span ? (
        <span class="small fixed">
          Captured
          <button type="button" class="small chip" onClick={() => setQuery({ since: null, until: null, cursor: null })} title="Of any time">
            <span class="unseen">Not only </span>{minute(span.since)} – {minute(span.until)} <span aria-hidden="true">✕</span>
          </button>
        </span>
      ) : (
        <Select name="range" label="Captured" options={[["", "any time"], ...RANGES.map(([name, label]): [string, string] => [name, `last ${label.toLowerCase()}`])]} chosen={query.get("range")} onChoose={apply} />
      )}
      <span class="submit">
        <button type="submit" class="small">Show</button>
        {isFiltered(query) && <a class="small" href={link(["captures"])}>Clear</a>}
      </span>
      <datalist id={TOOLS}>{[...new Set(tools)].filter(Boolean).map((tool) => <option key={tool} value={tool} />)}</datalist>
    </form>
  );
}

interface SelectProps {
  name: string;
  label: string;
  options: [value: string, label: string][];
  chosen: string | null;
  onChoose(form: HTMLFormElement): void;
}

/** A choice that counts at once. */
function Select({ name, label, options, chosen, onChoose }: SelectProps) {
  return (
    <label class="small">
      {label}
      <select name={name} onChange={(event) => onChoose(event.currentTarget.form!)}>
        {options.map(([value, text]) => <option key={value} value={value} selected={value === (chosen ?? "")}>{text}</option>)}
      </select>
    </label>
  );
}
