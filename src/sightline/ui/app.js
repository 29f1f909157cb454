// @ts-check
/** Starts the page: draws the frame, listens to keys, and follows the list of exchanges and the interception mode. */

import { loadAbout } from "./kit/about.js";
import { connect, onReconnect } from "./kit/api.js";
import { listen } from "./kit/keyboard.js";
import { toast } from "./kit/toast.js";
import { h, render } from "./vendor/preact.js";
import { startInterception } from "./views/interception/feed.js";
import { startKeptEdits } from "./views/interception/kept-edits.js";
import { Shell } from "./views/shell/shell.js";
import { startTraffic } from "./views/traffic/feed.js";

const root = document.getElementById("app");
if (root) render(h(Shell, {}), root);
listen();
startTraffic();
startInterception();
startKeptEdits();
connect();
void loadAbout();

// Words that end in an ellipsis show whole when they are pointed at, in every view.
addEventListener("pointerover", ({ target }) => {
  let cut = target instanceof HTMLElement ? target : null;
  while (cut && (cut.scrollWidth <= cut.clientWidth || getComputedStyle(cut).textOverflow !== "ellipsis"))
    cut = cut.parentElement;
  if (!cut || (cut.closest("[title]") && !cut.dataset.whole)) return;
  cut.dataset.whole = "yes"; // when the words change, so does the title
  cut.title = cut.textContent;
});

// A server that was started anew may bring another page along.
onReconnect(async () => {
  const [, own] = /(\/ui\/[^/]+)\//.exec(import.meta.url) ?? [];
  const page = await fetch("/", { cache: "no-store" }).then(
    (answer) => (answer.ok ? answer.text() : ""),
    () => "",
  );
  if (own && page && !page.includes(own)) {
    toast("Sightline was updated.", {
      hint: "Reload the page to use the new version.",
      action: { label: "Load", run: () => location.reload() },
    });
  }
});
