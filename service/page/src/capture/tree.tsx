// JSON as a tree to fold. Of each node only what is open is drawn, and of many children the first ones.
import { useState } from "preact/hooks";
import { count } from "../format.ts";
import { visible } from "../viewer/text.ts";
import { ExactNumber } from "./json.ts";

const MAX_CHILDREN = 100;
/** Characters of a string that are shown at once. */
const MAX_STRING = 2000;
/** Nodes of this many children or fewer are open where the tree begins. */
const OPEN_LEVELS = 2;
const OPEN_CHILDREN = 30;

export function Tree({ value }: { value: unknown }) {
  return <Node name={null} value={value} level={0} />;
}

interface NodeProps {
  /** Null for what has none: the whole. */
  name: string | null;
  value: unknown;
  level: number;
}

function Node({ name, value, level }: NodeProps) {
  const label = name !== null && <span class="json-name">{visible(name) || '""'}: </span>;
  if (!isBranch(value)) return <div class="json-leaf">{label}<Leaf value={value} /></div>;
  return <Branch label={label} value={value} level={level} />;
}

function isBranch(value: unknown): value is object {
  return value !== null && typeof value === "object" && !(value instanceof ExactNumber) && Object.keys(value).length > 0;
}

function Branch({ label, value, level }: { label: preact.ComponentChild; value: object; level: number }) {
  const children = Object.entries(value);
  const [isOpen, setOpen] = useState(level === 0 || (level < OPEN_LEVELS && children.length <= OPEN_CHILDREN));
  const [limit, setLimit] = useState(MAX_CHILDREN);
  const [begin, end] = Array.isArray(value) ? "[]" : "{}";
  return (
    <details class="json" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        {label}
        <span class="quiet">{begin}{count(children.length)}{end}</span>
      </summary>
      {isOpen && children.slice(0, limit).map(([key, child]) => <Node key={key} name={key} value={child} level={level + 1} />)}
      {isOpen && children.length > limit && (
        <button type="button" class="small" onClick={() => setLimit(limit + MAX_CHILDREN)}>{count(children.length - limit)} more</button>
      )}
    </details>
  );
}

function Leaf({ value }: { value: unknown }) {
  const [isWhole, setWhole] = useState(false);
  const text = value instanceof ExactNumber ? value.digits : JSON.stringify(value);
  const kind = value instanceof ExactNumber ? "number" : value === null ? "null" : typeof value;
  const isCut = !isWhole && text.length > MAX_STRING;
  return (
    <>
      <span class={`json-${kind}`}>{visible(isCut ? text.slice(0, MAX_STRING) : text)}</span>
      {isCut && <> <button type="button" class="small" onClick={() => setWhole(true)}>… {count(text.length - MAX_STRING)} more characters</button></>}
    </>
  );
}
