// Keys of the whole page. They do nothing while somebody types.
import { useLayoutEffect } from "preact/hooks";

type Actions = Record<string, () => void>;

export const HELP: [heading: string, keys: [names: string, meaning: string][]][] = [
  [
    "Everywhere",
    [
      ["d c T s", "dashboard, captures, terminals, sessions"],
      ["?", "these keys"],
      ["Esc", "leave a field, close what is open"],
    ],
  ],
  [
    "In a list",
    [["/", "to the filters"]],
  ],
  [
    "In an output",
    [
      ["/ Ctrl+F", "search all of it; Ctrl+F again for the browser's own, which knows only the lines in view"],
      ["n N", "next, previous match"],
      ["&", "only the lines that match, with some around"],
      ["e E", "next, previous error"],
      ["g G", "first, last line; of a live output G follows its end"],
      ["j k", "a line down, up"],
      ["Space b", "a screen down, up"],
      [":", "go to a line by its number"],
      ["w", "wrap long lines"],
      ["p", "what the model saw, beside the whole"],
      ["t", "as a tree or a table, if it is JSON or CSV"],
      ["i", "facts about it"],
      ["z", "nothing but the output"],
      ["[ ]", "the call before, after it in its session"],
    ],
  ],
];

export function useKeys(actions: Actions): void {
  useLayoutEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) && target.getAttribute("type") !== "checkbox";
      if (event.key === "Escape") target.blur();
      const isCommand = event.ctrlKey || event.metaKey;
      if (isTyping || event.altKey || document.querySelector("dialog[open], :popover-open")) return;
      if (event.key === " " && /^(BUTTON|SUMMARY)$/.test(target.tagName)) return;
      const action = actions[isCommand ? `Ctrl+${event.key}` : event.key];
      if (!action) return;
      event.preventDefault();
      action();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  });
}
