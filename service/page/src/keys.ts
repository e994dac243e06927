// Keys of the whole page. They do nothing while somebody types.
import { useEffect } from "preact/hooks";

type Actions = Record<string, () => void>;

export const HELP: [string, string][] = [
  ["?", "this help"],
  ["d, c, s", "dashboard, captures, sessions"],
  ["/, Ctrl+F", "search; Ctrl+F again for the browser's own, which knows only the lines in view"],
  ["n, N", "next, previous match"],
  ["&", "only the lines that match, with some around"],
  ["e", "next error"],
  ["g, G", "first, last line"],
  ["j, k, space, b", "a line or a screen down, up"],
  [":", "go to a line by its number"],
  ["w", "wrap long lines"],
  ["p", "what the model saw, beside the whole"],
  ["Esc", "leave a field, close this help"],
];

export function useKeys(actions: Actions): void {
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) && target.getAttribute("type") !== "checkbox";
      if (event.key === "Escape") target.blur();
      const isCommand = event.ctrlKey || event.metaKey;
      if (isTyping || event.altKey || document.querySelector("dialog[open]")) return;
      if (event.key === " " && target.tagName === "BUTTON") return;
      const action = actions[isCommand ? `Ctrl+${event.key}` : event.key];
      if (!action) return;
      event.preventDefault();
      action();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  });
}
