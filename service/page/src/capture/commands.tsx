// The commands that a shell ran on a terminal, the last one first: choose one to go to its output.
import { useState } from "preact/hooks";
import { count } from "../format.ts";
import { useLoaded } from "../load.ts";
import { Dialog } from "../parts/dialog.tsx";
import { Shown } from "../parts/states.tsx";
import { Name } from "../parts/text.tsx";
import { setQuery } from "../route.ts";
import type { Entry } from "../service/wire.ts";
import { lastCommands, type Section } from "../viewer/sections.ts";
import { COMMAND_LABEL, TERMINAL_LABEL } from "../viewer/text.ts";

interface CommandsProps {
  entry: Entry;
  onGo(line: number): void;
}

/** Whether commands may be marked in it: not in the output of one command. */
export function mayHaveCommands({ labels, tool }: Entry): boolean {
  return TERMINAL_LABEL in labels && (tool === "shell" || !(COMMAND_LABEL in labels));
}

export function Commands({ entry, onGo }: CommandsProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button type="button" class="small" aria-haspopup="dialog" title="The commands that the shell ran, with their exit codes" onClick={() => setOpen(true)}>Commands</button>
      {isOpen && <CommandList entry={entry} onGo={onGo} onClose={() => setOpen(false)} />}
    </>
  );
}

function CommandList({ entry, onGo, onClose }: CommandsProps & { onClose(): void }) {
  const found = useLoaded((signal) => lastCommands(entry.id, signal), [entry.id]);
  const choose = (section: Section) => {
    const first = Math.max(1, section.start - 1);  // the command line itself stands before its output
    setQuery({ lines: `${first}-${Math.max(first, section.end ?? entry.lines)}` }, true);
    onGo(first);
  };
  return (
    <Dialog title="Commands of this shell" isLong onClose={onClose}>
      {(close) => (
        <Shown of={found}>
          {(sections) => (
            <>
              {sections.length === 0 && <p>No shell has marked commands here. <code>overspill shell</code> with bash, zsh or fish does.</p>}
              <ol class="commands">
                {[...sections].reverse().map((each) => (
                  <li key={each.start}><Command section={each} isLive={entry.state === "live"} onChoose={() => (close(), choose(each))} /></li>
                ))}
              </ol>
            </>
          )}
        </Shown>
      )}
    </Dialog>
  );
}

function Command({ section, isLive, onChoose }: { section: Section; isLive: boolean; onChoose(): void }) {
  const { command, code } = section;
  const kind = code === null ? "" : code === 0 ? "good" : "bad";
  return (
    <button type="button" onClick={onChoose}>
      <code><Name text={command} empty="a command without a name" /></code>
      <span class="small">
        <span class={`status ${kind}`}>{code !== null ? `exit ${code}` : section.end === null && isLive ? "running" : "no exit code"}</span>
        <span class="quiet">{linesOf(section)}</span>
      </span>
    </button>
  );
}

function linesOf({ start, end }: Section): string {
  if (end === null) return `from line ${count(start)} on`;
  if (end < start) return "no output";
  return end === start ? `line ${count(start)}` : `lines ${count(start)}–${count(end)}`;
}
