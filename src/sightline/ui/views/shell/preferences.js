// @ts-check
/** Preferences of this browser: the theme, and notifications about held requests. */

import { toExchange } from "../../kit/navigation.js";
import { readStored, store } from "../../kit/storage.js";
import { toast } from "../../kit/toast.js";
import { effect, signal } from "../../vendor/preact.js";
import { onHeld } from "../traffic/feed.js";

/** "" follows the system. */
export const theme = signal(readStored("theme"));
export const notifies = signal(
  readStored("notify") === "yes" && "Notification" in globalThis && Notification.permission === "granted",
);

effect(() => {
  if (theme.value) document.documentElement.dataset.theme = theme.value;
  else delete document.documentElement.dataset.theme;
  store("theme", theme.value);
});

/** Ask the browser for leave where that is needed. */
export async function toggleNotifications() {
  if (notifies.value) notifies.value = false;
  else if (!("Notification" in globalThis)) toast("This browser has no notifications.", { tone: "bad" });
  else if ((await Notification.requestPermission()) === "granted") notifies.value = true;
  else
    toast("The browser does not allow notifications here.", {
      hint: "Allow them in the site's settings.",
      tone: "bad",
    });
  store("notify", notifies.value ? "yes" : "");
}

onHeld((line) => {
  if (!notifies.value || !document.hidden) return;
  const notification = new Notification("A request is held", {
    body: [line.model, line.session].filter(Boolean).join(" · "),
    tag: line.id,
  });
  notification.onclick = () => {
    focus();
    toExchange(line.id);
    notification.close();
  };
});
