// @ts-check
/** Starts the page: draws the frame, listens to keys, and follows the list of exchanges and the interception mode. */

import { loadAbout } from "./kit/about.js";
import { connect, onReconnect } from "./kit/api.js";
import { listen } from "./kit/keyboard.js";
import { toast } from "./kit/toast.js";
import { h, render } from "./vendor/preact.js";
import { startInterception } from "./views/interception/feed.js";
import { Shell } from "./views/shell/shell.js";
import { startTraffic } from "./views/traffic/feed.js";

const root = document.getElementById("app");
if (root) render(h(Shell, {}), root);
listen();
startTraffic();
startInterception();
connect();
void loadAbout();

// A server that was started anew may bring another page along.
onReconnect(async () => {
  const [, own] = /(\/ui\/[^/]+)\//.exec(import.meta.url) ?? [];
  const page = await fetch("/", { cache: "no-store" }).then(
    (answer) => (answer.ok ? answer.text() : ""),
    () => "",
  );
  if (own && page && !page.includes(own)) {
    toast("Sightline was updated.", {
      hint: "Load the page again to use the new one.",
      action: { label: "Load", run: () => location.reload() },
    });
  }
});
