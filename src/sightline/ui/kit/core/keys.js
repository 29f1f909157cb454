// @ts-check
/** Names of keys (`ctrl+k`, `shift+enter`, `?`) and of key sequences (`g t`). */

/** @typedef {{ key: string, ctrlKey: boolean, metaKey: boolean, altKey: boolean, shiftKey: boolean }} KeyPress */

/** How long the first of two keys is remembered, in milliseconds. */
export const CHORD_MS = 1200;

/**
 * What was pressed. Command counts as control; shift is named only where the character does not show it.
 * @param {KeyPress} press
 */
export function keyOf(press) {
  const key = press.key.length === 1 ? press.key : press.key.toLowerCase().replace(/^arrow/, "");
  if (["control", "meta", "alt", "shift"].includes(key)) return "";
  const names = [];
  if (press.ctrlKey || press.metaKey) names.push("ctrl");
  if (press.altKey) names.push("alt");
  if (press.shiftKey && (key.length > 1 || names.length)) names.push("shift");
  names.push(key === " " ? "space" : names.length ? key.toLowerCase() : key);
  return names.join("+");
}

/**
 * One step through keys that follow each other.
 * @param {readonly string[]} known every sequence there is
 * @param {string} before what was pressed so far
 * @param {string} key
 * @returns {{ found: string, pending: string }}
 */
export function matchSequence(known, before, key) {
  const together = before ? `${before} ${key}` : key;
  for (const keys of before ? [together, key] : [key]) {
    if (known.includes(keys)) return { found: keys, pending: "" };
    if (known.some((each) => each.startsWith(`${keys} `))) return { found: "", pending: keys };
  }
  return { found: "", pending: "" };
}

/** @type {Record<string, string>} */
const CAPS = {
  ctrl: "Ctrl",
  alt: "Alt",
  shift: "Shift",
  enter: "↵",
  escape: "Esc",
  up: "↑",
  down: "↓",
  left: "←",
  right: "→",
  space: "Space",
  pagedown: "PgDn",
  pageup: "PgUp",
  home: "Home",
  end: "End",
  tab: "Tab",
  backspace: "⌫",
  delete: "Del",
};

/**
 * Keys as caps: `g t` gives two steps of one cap each, `ctrl+k` one step of two, and so does `D`, which needs shift.
 * @param {string} keys
 * @param {boolean} isMac
 * @returns {string[][]}
 */
export function keyCapsOf(keys, isMac = false) {
  return keys.split(" ").map((step) =>
    step.split(/\+(?=.)/).flatMap((name) => {
      if (isMac && name === "ctrl") return ["⌘"];
      if (/^[A-Z]$/.test(name)) return [CAPS.shift, name];
      // A letter alone is drawn as it is typed: `e` and `E` can be different commands.
      return [CAPS[name] ?? (step !== name || /^f\d/.test(name) ? name.toUpperCase() : name)];
    }),
  );
}
