// Light, dark, or as the system has it.
const NAME = "overspill-theme";

export const themes = {
  chosen(): string {
    return localStorage.getItem(NAME) ?? "";
  },
  choose(theme: string): void {
    if (theme) localStorage.setItem(NAME, theme);
    else localStorage.removeItem(NAME);
    this.apply();
  },
  /** Set what the style sheet reads, and tell what draws by itself. */
  apply(): void {
    document.documentElement.dataset["theme"] = this.chosen();
    dispatchEvent(new Event("themechange"));
  },
};
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => themes.apply());
