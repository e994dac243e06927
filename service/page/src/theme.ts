// Light, dark, or as the system has it.
const NAME = "overspill-theme";

let chosen = "";
try {
  chosen = localStorage.getItem(NAME) ?? "";
} catch {
  // this browser keeps nothing for the page: the choice lasts as long as the page
}

export const themes = {
  chosen(): string {
    return chosen;
  },
  choose(theme: string): void {
    chosen = theme;
    this.apply();
    try {
      if (theme) localStorage.setItem(NAME, theme);
      else localStorage.removeItem(NAME);
    } catch {
      // as above
    }
  },
  /** Set what the style sheet reads, and tell what draws by itself. */
  apply(): void {
    document.documentElement.dataset["theme"] = chosen;
    dispatchEvent(new Event("themechange"));
  },
};
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => themes.apply());
